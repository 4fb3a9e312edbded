#include "data/vocabularies.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "text/spm_trainer.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const DataOptions& options, bool src, bool tgt) {
  std::vector<std::string> files;
  for (const CorpusOptions& corpus : options.train) {
    if (src) files.push_back(corpus.src);
    if (tgt) files.push_back(corpus.tgt);
  }
  for (const std::string& file : files) require_readable_file(file, "training text");
  return files;
}

VocabularyPtr load_or_train(const DataOptions& options, const fs::path& path, const std::vector<std::string>& files, uint64_t seed) {
  if (!fs::exists(path)) {
    log_info("training a SentencePiece model of {} pieces: {}", options.vocab_size, path.string());
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const SpmTraining training = {options.vocab_size, options.spm_type, options.character_coverage, options.spm_sample_lines, seed};
    write_file_atomically(path, train_sentencepiece(files, training));
  }
  return load_sentencepiece(path.string());
}

Vocabularies same(VocabularyPtr vocabulary) {
  return {vocabulary, vocabulary};
}

}  // namespace

Vocabularies prepare_vocabularies(const DataOptions& options, const std::string& folder, uint64_t seed) {
  if (options.tokenizer == Tokenizer::kNone) {
    if (!options.vocab.empty()) return same(load_token_list(options.vocab));
    return {load_token_list(options.src_vocab), load_token_list(options.tgt_vocab)};
  }
  if (!options.spm_model.empty()) return same(load_sentencepiece(options.spm_model));
  if (!options.src_spm_model.empty()) return {load_sentencepiece(options.src_spm_model), load_sentencepiece(options.tgt_spm_model)};
  if (options.train.empty()) throw ConfigError("data.train is empty; expected training corpora: [{src: FILE, tgt: FILE}]");
  if (options.shared_vocab) return same(load_or_train(options, fs::path(folder) / "spm.model", files_of(options, true, true), seed));
  return {load_or_train(options, fs::path(folder) / "spm.src.model", files_of(options, true, false), seed),
          load_or_train(options, fs::path(folder) / "spm.tgt.model", files_of(options, false, true), seed)};
}

}  // namespace lacuna

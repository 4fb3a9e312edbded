#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "config/run_files.h"
#include "data/corpus_reader.h"
#include "data/training_data.h"
#include "text/invisible_characters.h"
#include "text/spm_trainer.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastCoverage = 0.98;

/// The text that a model is trained on: sides of corpora.
struct TrainingText {
  std::vector<std::string> files;  ///< the file of each side
  std::vector<SpmText> sides;      ///< the names say which part of the files is read

  void add(const std::string& file, SpmText side) {
    files.push_back(file);
    sides.push_back(std::move(side));
  }
  std::string names() const {
    std::vector<std::string> all;
    for (const SpmText& side : sides) all.push_back(side.name);
    return join(all);
  }
};

/// Returns what passes over bad lines, and counts them.
CorpusReader::BadLineHandler counted_in(int64_t& count) {
  return [&count](const LineError& /*error*/, std::string_view /*line*/) { ++count; };
}

/// Reads one side alone, without the characters that sources lose. If the sides are two files, they are known to have the
/// same length, and no bad lines unless these are skipped.
SpmText src_of(const CorpusOptions& corpus, OnBadLine bad_lines) {
  if (corpus.tsv.empty() && corpus.src_prefix.empty() && bad_lines == OnBadLine::kStop) return text_file(corpus.src, Side::kSrc);
  const std::string prefix = corpus.src_prefix.empty() ? "" : fmt::format(" behind \"{}\"", corpus.src_prefix);
  const auto read = [corpus](const auto& use) {
    std::string src, tgt;
    int64_t passed_over = 0;
    for (CorpusReader reader(corpus, counted_in(passed_over)); reader.next(src, tgt);) use(without_invisible_characters(src));
    return passed_over;
  };
  return {.name = corpus.src_text() + prefix, .read = read};
}

SpmText tgt_of(const CorpusOptions& corpus, OnBadLine bad_lines) {
  if (corpus.tsv.empty() && bad_lines == OnBadLine::kStop) return text_file(corpus.tgt, Side::kTgt);
  const auto read = [corpus](const auto& use) {
    std::string src, tgt;
    int64_t passed_over = 0;
    for (CorpusReader reader(corpus, counted_in(passed_over)); reader.next(src, tgt);) use(tgt);
    return passed_over;
  };
  return {.name = corpus.tgt_text(), .read = read, .is_target = true};
}

TrainingText text_of(const DataOptions& options, bool src, bool tgt) {
  TrainingText text;
  for (const CorpusOptions& corpus : options.train) {
    const auto files = corpus.files();
    for (const auto& [file, what] : files) require_corpus_file(file, "training text");
    if (src) text.add(files.front().first, src_of(corpus, options.bad_lines));
    if (tgt) text.add(files.back().first, tgt_of(corpus, options.bad_lines));
  }
  return text;
}

std::string settings_text(const DataOptions& options, uint64_t seed, const TrainingText& text) {
  return fmt::format("vocab_size {}\ntype {}\ncharacter_coverage {}\nsample_lines {}\nseed {}\nfiles {}\ncontents {}\n", options.vocab_size,
                     options.spm_type == SubwordType::kBpe ? "bpe" : "unigram", options.character_coverage, options.spm_sample_lines, seed,
                     text.names(), hash_of_files(text.files)) +
         (options.spm_symbols.empty() ? "" : "symbols " + join(options.spm_symbols) + "\n") +
         (options.spm_byte_fallback ? "byte_fallback\n" : "") +
         fmt::format("normalization {} {}\n", options.src_normalization, options.tgt_normalization);
}

std::string note_text(const std::string& settings, const std::string& model) {
  ContentHash hash;
  hash.add(model);
  return "model " + hash.text() + "\n" + settings;
}

/// True if the model at `path` may be used. False if, by the note beside it, an abandoned start with other settings or texts trained it. A
/// model without a note, or that is not the note's, was put there on purpose (a resumed run has the model of its checkpoint).
bool is_ours(const fs::path& path, const fs::path& note, const std::string& settings) {
  if (!fs::exists(path)) return false;
  if (!fs::exists(note)) return true;
  const std::string model = read_file(path), noted = read_file(note);
  return noted == note_text(settings, model) || !noted.starts_with(note_text("", model));
}

/// Returns the model at `path`; trains it first if it is missing.
VocabularyPtr load_or_train(const DataOptions& options, const fs::path& path, const TrainingText& text, uint64_t seed, Side side) {
  const fs::path note = path.string() + run_files::kTrainingNote;
  const std::string settings = settings_text(options, seed, text);
  if (!is_ours(path, note, settings)) {
    if (options.character_coverage < kLeastCoverage)
      throw ConfigError(fmt::format("data.character_coverage is {}; expected {} to 1, with which SentencePiece trains",
                                    options.character_coverage, kLeastCoverage));
    for (const CorpusOptions& corpus : options.train)
      count_pairs(corpus, options.bad_lines, kSkipInTraining);  // for its errors, before long work
    log_info("training a SentencePiece model of {} pieces: {}", options.vocab_size, path.string());
    const std::string model = train_sentencepiece(text.sides, options, seed);
    std::error_code error;
    fs::remove(path, error);  // beside the note about the next model it would seem put there on purpose, if this process were killed now
    write_file_atomically(note, note_text(settings, model));
    write_file_atomically(path, model);
  }
  VocabularyPtr vocabulary = load_sentencepiece(path.string(), side);
  const bool is_as_wanted = fs::exists(note) && read_file(note) == note_text(settings, read_file(path));
  if (!is_as_wanted && vocabulary->size() != options.vocab_size)
    log_info("{}, which no training of this configuration has made, is taken as it is: {} pieces, whatever data.vocab_size says",
             path.string(), vocabulary->size());
  if (is_as_wanted && vocabulary->size() < options.vocab_size)
    log_warning("{}: data.vocab_size is {}, and {} gives {} pieces: the vocabulary has as many", path.string(), options.vocab_size,
                text.names(), vocabulary->size());
  return vocabulary;
}

}  // namespace

Vocabularies prepare_vocabularies(const DataOptions& options, const std::string& folder, uint64_t seed) {
  if (options.tokenizer == Tokenizer::kNone) {
    if (!options.vocab.empty()) return for_both_sides(load_token_list(options.vocab));
    return {load_token_list(options.src_vocab), load_token_list(options.tgt_vocab)};
  }
  if (!options.spm_model.empty()) return for_both_sides(load_sentencepiece(options.spm_model));
  if (!options.src_spm_model.empty())
    return {load_sentencepiece(options.src_spm_model, Side::kSrc), load_sentencepiece(options.tgt_spm_model, Side::kTgt)};
  if (options.train.empty()) throw ConfigError(fmt::format("data.train is empty; expected training corpora: {}", CorpusOptions::kForm));
  const auto made = [&](const char* file, bool src, bool tgt) {
    return load_or_train(options, fs::path(folder) / file, text_of(options, src, tgt), seed, src ? Side::kSrc : Side::kTgt);
  };
  if (options.shared_vocab) return for_both_sides(made(run_files::kSpmModel, true, true));
  return {made(run_files::kSrcSpmModel, true, false), made(run_files::kTgtSpmModel, false, true)};
}

}  // namespace lacuna

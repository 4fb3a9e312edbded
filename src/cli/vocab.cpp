#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/verb.h"
#include "config/load.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

int run_vocab(const std::vector<std::string>& arguments) {
  CommandLine app("Trains a SentencePiece model on text. `lacuna train` does it by itself where a configuration names no model.",
                  "lacuna vocab");
  std::vector<std::string> inputs;
  std::string output, type = "unigram", rule = "nmt_nfkc";
  DataOptions options;
  uint64_t seed = 1;
  app.add_option("-i,--input", inputs, "Text, one sentence a line, plain, gzip or zstd; several files: one model for all")->required();
  app.add_option("-o,--output", output, "File to write, such as spm.model")->required();
  app.add_option("--vocab-size", options.vocab_size, "Pieces of the model")->check(whole_number_from(16, 1 << 20));
  app.add_option("--type", type, "Kind of model")->check(CLI::IsMember({"unigram", "bpe"}));
  app.add_option("--symbols", options.spm_symbols, "Comma-separated: pieces that the model has whatever the text, such as <bt>,<2de>")
      ->delimiter(',');
  app.add_flag("--byte-fallback", options.spm_byte_fallback,
               "Spell characters that the model does not cover in bytes, which take 256 pieces");
  std::vector<std::string> rules;
  for (const auto& [name, value] : normalizations().names) rules.push_back(name);
  app.add_option("--normalization", rule,
                 "SentencePiece's rule for text before the model reads it; identity keeps it, for a model of the target side")
      ->check(CLI::IsMember(rules));
  app.add_option("--character-coverage", options.character_coverage, "Share of characters the model covers")
      ->check(real_number_between(0.98, 1));
  app.add_option("--sample-lines", options.spm_sample_lines, "Lines to train on, drawn evenly")->check(whole_number_from(1));
  app.add_option("--seed", seed, "Seed of that draw")->check(whole_number_from(0));
  if (!app.read(arguments)) return 0;
  validate_symbols(options.spm_symbols, "--symbols");
  options.spm_type = type == "bpe" ? SubwordType::kBpe : SubwordType::kUnigram;
  options.src_normalization = options.tgt_normalization = rule;
  for (const std::string& input : inputs) require_readable_file(input, "text, one sentence a line");
  Output file(output, inputs);  // for its errors, before long work
  const std::string model = train_sentencepiece(inputs, options, seed);
  if (!file.write(model)) return kBrokenPipe;
  file.finish();
  const int64_t pieces = sentencepiece_from_bytes(model, output)->size();
  if (pieces < options.vocab_size) log_warning("--vocab-size is {}, and this text gives {} pieces", options.vocab_size, pieces);
  log_info("{}: {} pieces", output, pieces);
  return 0;
}

}  // namespace

Verb vocab_verb() {
  return {"vocab", "train a SentencePiece model", run_vocab};
}

}  // namespace lacuna

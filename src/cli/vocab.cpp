#include "base/files.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "config/load.h"
#include "text/normalization.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

struct VocabFlags {
  std::vector<std::string> inputs, src, tgt;
  std::string output, type = "unigram", rule;
  DataOptions options;
  uint64_t seed = 1;

  void declare(CLI::App& app) {
    auto* input = app.add_option("-i,--input", inputs,
                                 "Text of any side, one sentence a line, plain, gzip or zstd; several files: one model for all");
    app.add_option("--src", src, "Text of the source side, in place of -i: the model is the one that training would make")->excludes(input);
    app.add_option("--tgt", tgt, "Text of the target side; alone, for a model of that side")->excludes(input);
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
                   "SentencePiece's rule for text before the model reads it, on either side; unless given, as in training: nmt_nfkc for "
                   "sources, and targets are kept as they are")
        ->check(CLI::IsMember(rules));
    app.add_option("--character-coverage", options.character_coverage, "Share of characters the model covers")
        ->check(real_number_between(0.98, 1));
    app.add_option("--sample-lines", options.spm_sample_lines, "Lines to train on, drawn evenly")->check(whole_number_from(1));
    app.add_option("--seed", seed, "Seed of that draw")->check(whole_number_from(0));
    flags::add_on_error(app, options.bad_lines, "it is left out");
  }
  /// Throws UsageError, or DataError, for what cannot be trained on.
  void finish() {
    if (files().empty()) throw UsageError("--input is required, or --src and --tgt; see lacuna vocab --help");
    validate_symbols(options.spm_symbols, "--symbols");
    options.spm_type = type == "bpe" ? SubwordType::kBpe : SubwordType::kUnigram;
    if (!rule.empty()) options.src_normalization = options.tgt_normalization = rule;
    for (const std::string& file : files()) require_readable_file(file, "text, one sentence a line");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> all = inputs;
    all.insert(all.end(), src.begin(), src.end());
    all.insert(all.end(), tgt.begin(), tgt.end());
    return all;
  }
  /// Text of any side may be of the target's, and is kept as such.
  std::vector<SpmText> texts() const {
    std::vector<SpmText> all;
    const auto add = [&](const std::vector<std::string>& of_side, Side side) {
      for (const std::string& file : of_side) all.push_back(text_file(file, side, options.bad_lines, kHowToSkip));
    };
    add(inputs, Side::kTgt);
    add(src, Side::kSrc);
    add(tgt, Side::kTgt);
    return all;
  }
};

TrainedSpm train(const VocabFlags& flags) {
  TrainedSpm trained = train_counting_lines(flags.texts(), flags.options, flags.seed);
  const auto& src = flags.options.src_normalization;
  const auto& tgt = flags.options.tgt_normalization;
  if (!flags.inputs.empty() && src != tgt) trained.model = with_rules(trained.model, Normalizer(src), Normalizer(tgt));
  return trained;
}

int run_vocab(const std::vector<std::string>& arguments) {
  CommandLine app("Trains a SentencePiece model on text. `lacuna train` does it by itself where a configuration names no model.",
                  "lacuna vocab");
  VocabFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.finish();
  Output file(flags.output, flags.files());  // for its errors, before long work
  const TrainedSpm trained = train(flags);
  if (!file.write(trained.model)) return kBrokenPipe;
  file.finish();
  const int64_t pieces = sentencepiece_from_bytes(trained.model, flags.output)->size();
  if (pieces < flags.options.vocab_size) log_warning("--vocab-size is {}, and this text gives {} pieces", flags.options.vocab_size, pieces);
  log_info("{}: {} pieces", flags.output, pieces);
  flags::require_none_passed_over(trained.bad_lines, trained.lines);
  return 0;
}

}  // namespace

Verb vocab_verb() {
  return {"vocab", "train a SentencePiece model", run_vocab};
}

}  // namespace lacuna

#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "attention/registry.h"
#include "base/interrupt.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/output.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "run/load_models.h"
#include "run/translate_text.h"
#include "search/translator.h"

namespace lacuna {
namespace {

struct TranslateFlags {
  std::vector<std::string> models;
  std::string input = "-", output = "-", prefix, alignment;
  std::optional<int> alignment_layer;
  uint64_t seed = 1;
  TranslationFormat format;
  OnBadLine on_error = OnBadLine::kStop;
  flags::KeyFlags keys{option_help<TranslateOptions>("translate.")};
  CommonFlags common;

  void declare(CLI::App& app) {
    flags::add_models(app, models, ": an ensemble");
    app.add_option("-i,--input", input, "Text, one sentence a line, plain, gzip or zstd; - is standard input")->type_name("FILE");
    flags::add_output(app, output, "File for the translations, packed if its name ends in .gz or .zst");
    for (const auto& [flag, key] : {std::pair("-b,--beam-size", "beam_size"),
                                    {"--n-best", "n_best"},
                                    {"--length-penalty", "length_penalty"},
                                    {"--length-penalty-type", "length_penalty_type"},
                                    {"--max-length-ratio", "max_length_ratio"},
                                    {"--max-length", "max_length"},
                                    {"--min-length", "min_length"},
                                    {"--no-repeat-ngram-size", "no_repeat_ngram_size"},
                                    {"--repetition-penalty", "repetition_penalty"},
                                    {"--sampling", "sampling"},
                                    {"--temperature", "temperature"},
                                    {"--batch-tokens", "batch_tokens"},
                                    {"--precision", "precision"},
                                    {"--shortlist", "shortlist"}})
      keys.add(app, flag, std::string("translate.") + key);
    keys.add(app, "--guard", "translate.guard", /*is_of_model=*/true, "flag");
    app.add_option(
        "--prefix", prefix,
        "Text that every translation begins with, but for the empty one of an empty line; in JSON, \"prefix\" of a line comes first");
    auto* aligns = app.add_option("--alignment", alignment, "Add alignments (0-0 1-2) of words or of pieces")
                       ->check(CLI::IsMember({"word", "subword"}));
    app.add_option("--alignment-layer", alignment_layer,
                   "Decoder layer whose cross attention aligns, 0 the lowest; the last but one unless given")
        ->check(whole_number_from(0))
        ->needs(aligns);
    auto* json =
        app.add_flag("--json", format.json,
                     "One JSON object a line, in and out: {\"text\": ...}; other fields are passed through, and those that a result "
                     "has are replaced");
    app.add_flag("--scores", format.scores, "Begin each line with its score and a tab; in JSON and n-best lists it is there anyway")
        ->excludes(json)
        ->excludes("--n-best");
    flags::add_on_error(app, on_error);
    app.add_option("--seed", seed, "Seed of sampling")->check(whole_number_from(0));
    app.set_help_all_flag("--help-options",
                          "Print every key under `translate` and `model.attention` with its default, range and meaning, and end");
    common.declare_runtime(app);
    app.footer(
        "Every key under `translate` is a flag too: --translate.allow_unk true. So is every key under `model.attention`, as far as the\n"
        "checkpoint has the parameters: --model.attention.cross.sparsify train, --model.attention entmax15");
    app.allow_extras();
  }

  std::vector<std::string> overrides(const CLI::App& app) const {
    std::vector<std::string> words = overrides_of(app), given = keys.overrides();
    words.insert(words.end(), given.begin(), given.end());
    return words;
  }
};

TranslatorSettings settings_of(const TranslateFlags& flags, const TranslateOptions& options, const Vocabularies& vocabularies, int layers) {
  TranslatorSettings settings{options, AlignmentLevel::kNone, flags.alignment_layer.value_or(std::max(0, layers - 2)), flags.seed};
  if (!options.shortlist.empty()) settings.shortlist = read_shortlist(options.shortlist, vocabularies);
  if (flags.alignment.empty()) return settings;
  settings.alignment = flags.alignment == "word" ? AlignmentLevel::kWord : AlignmentLevel::kPiece;
  if (settings.alignment_layer >= layers)
    throw UsageError("--alignment-layer is " + std::to_string(settings.alignment_layer) + "; the decoder's layers are 0 to " +
                     std::to_string(layers - 1));
  return settings;
}

/// Warns of flags in `words` that change nothing: those of sampling, or of another way of it, unless they have the default's value, and the
/// size of the beam where translations are drawn.
void warn_of_unused_flags(const TranslateOptions& options, const CLI::App& app, const std::vector<std::string>& words) {
  const auto is_given = [&](const std::string& flag) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
  };
  const TranslateOptions usual;
  const auto warn = [](const char* flag, const char* sampling) { log_warning("{} changes nothing without --sampling {}", flag, sampling); };
  if (options.sampling == Sampling::kNone) {
    if (options.temperature != usual.temperature && is_given("--translate.temperature"))
      warn("--temperature", "full, top_k or top_p");  // the short flag stands for the key
    if (app.count("--seed") > 0) warn("--seed", "full, top_k or top_p");
  } else if (app.count("--beam-size") > 0) {
    log_warning("--beam-size changes nothing with --sampling: --n-best says how many translations of a line are drawn");
  }
  if (options.sampling != Sampling::kTopK && options.sample_k != usual.sample_k && is_given("--translate.sample_k"))
    warn("--translate.sample_k", "top_k");
  if (options.sampling != Sampling::kTopP && options.sample_p != usual.sample_p && is_given("--translate.sample_p"))
    warn("--translate.sample_p", "top_p");
}

int run_translate(const std::vector<std::string>& arguments) {
  CommandLine app("Translates text, line by line.", "lacuna translate");
  TranslateFlags flags;
  flags.declare(app);
  if (!app.read(arguments, search_options_help() + attention_help())) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.prepared_device();
  if (const auto bad = first_invalid_utf8(flags.prefix))
    throw UsageError("--prefix: byte " + std::to_string(*bad + 1) + " is not UTF-8; expected text");
  if (flags.input.empty()) throw UsageError("-i is empty; expected a file to read, or - for standard input");
  LineReader reader(flags.input);
  Output output(flags.output, {flags.input});
  handle_interrupts();
  let_sigterm_end_reading();
  const std::vector<std::string> words = flags.overrides(app);
  LoadedEnsemble loaded = as_ensemble(load_models(flags.models, device, words));
  restrict_search(loaded.options.translate, flags.models.front(), words);
  require_precision(loaded.options.translate.precision, device, words);
  warn_of_unused_flags(loaded.options.translate, app, words);
  flags.format.n_best = loaded.options.translate.n_best > 1 || app.count("--n-best") > 0;
  flags.format.alignment = !flags.alignment.empty();
  loaded.round_weights();
  TranslationProgress progress(flags.input, flags.output, flags.common.quiet);
  TranslatorSettings settings = settings_of(flags, loaded.options.translate, loaded.vocabularies, loaded.decoder_layers);
  settings.on_sentence = [&progress] { progress.add_sentence(); };
  Translator translator(loaded.model, loaded.vocabularies, std::move(settings));
  const at::NoGradGuard no_gradients;
  const TextTranslation how = {
      .prefix = flags.prefix, .format = flags.format, .longest = loaded.options.data.max_length, .bad_lines = flags.on_error};
  const TranslatedText done = translate_text(reader, output, translator, how, progress);
  if (!done.is_read) return kBrokenPipe;
  output.finish();
  flags::require_none_passed_over(done.bad_lines, done.lines);
  return 0;
}

}  // namespace

Verb translate_verb() {
  return {"translate", "translate text: beam search or sampling, n-best, alignments, ensembles", run_translate};
}

}  // namespace lacuna

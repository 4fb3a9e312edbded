#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "attention/registry.h"
#include "base/interrupt.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/output.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/part_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "run/load_models.h"
#include "run/part_terms.h"
#include "run/split_text.h"
#include "run/text_parts.h"
#include "run/translate_document.h"
#include "run/translate_text.h"
#include "search/translator.h"

namespace lacuna {
namespace {

constexpr int64_t kLargestFirstLine = 1'000'000'000'000;

struct TranslateFlags {
  std::vector<std::string> models;
  std::string input = "-", output = "-", prefix, alignment, language, terms;
  std::optional<int> alignment_layer, alignment_head;
  uint64_t seed = 1;
  int64_t first_line = 1;
  PartFlags parts;
  TranslationFormat format;
  OnBadLine on_error = OnBadLine::kStop;
  bool splits = false;
  DocumentFormat document = DocumentFormat::kText;
  flags::KeyFlags keys{option_help<TranslateOptions>("translate.")};
  CommonFlags common;

  void declare(CLI::App& app) {
    auto* model = flags::add_models(app, models, ": an ensemble");
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
                   "Decoder layer whose cross attention aligns, 0 the lowest; unless given, that of the head that links guided in training "
                   "(train.guided_alignment), or else the last but one")
        ->check(whole_number_from(0))
        ->needs(aligns);
    app.add_option("--alignment-head", alignment_head, "Head of that layer; the guided one or else the average of all unless given")
        ->check(whole_number_from(0))
        ->needs(aligns);
    app.add_option(
           "--terms", terms,
           "File of terms, a source term, a tab and its translation in each line, that come out as they say; in JSON, \"terms\" of a "
           "line come first")
        ->type_name("FILE");
    auto* split = app.add_flag("--split", splits,
                               "A line may hold any text: its sentences are found and translated each for itself, those too long for the "
                               "model in parts; white space stays. In JSON, \"text\" may hold line breaks");
    app.add_option("--language", language,
                   "Code of the text's language (de), for the rules of --split and --format; the model's data.src_lang unless given")
        ->type_name("CODE");
    auto* format_flag =
        app.add_option_function<std::string>(
               "--format", [this](const std::string& name) { document = format_named(name); },
               "text: lines; html: one document, or a part of one, of which the texts are translated and the tags stay; srt, vtt: "
               "subtitles, whose times stay")
            ->default_str("text")
            ->check(CLI::IsMember({"text", "html", "srt", "vtt"}))
            ->excludes(split);
    auto* json =
        app.add_flag("--json", format.json,
                     "One JSON object a line, in and out: {\"text\": ...}; options of a line, such as \"beam_size\": 1, hold for it "
                     "alone; other fields are passed through, and those that a result has are replaced");
    app.add_flag("--tokens", format.tokens, "Add the pieces of translations and the log-probability of each")->needs(json);
    app.add_flag("--scores", format.scores, "Begin each line with its score and a tab; in JSON and n-best lists it is there anyway")
        ->excludes(json)
        ->excludes("--n-best");
    flags::add_on_error(app, on_error);
    app.add_option("--seed", seed, "Seed of sampling")->check(whole_number_from(0));
    app.set_help_all_flag("--help-options",
                          "Print every key under `translate` and `model.attention` with its default, range and meaning, and end");
    auto* first =
        app.add_option("--first-line", first_line,
                       "Number of the input's first line, where it is a piece of a longer text: messages, n-best lists and the random "
                       "numbers of sampling go by it, so that pieces are translated as the whole would be")
            ->check(whole_number_from(1, kLargestFirstLine));
    parts.declare(app, {model}, {first});
    for (const char* const other :
         {"--json", "--scores", "--n-best", "--alignment", "--prefix", "--first-line", "--on-error", "--part-lines"})
      format_flag->excludes(other);
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

/// Returns what links words: the layer and head of the flags or, without a flag, what the models say. Throws UsageError for one that they
/// do not have.
AlignmentSource alignment_source(const TranslateFlags& flags, const LoadedEnsemble& loaded) {
  AlignmentSource source = loaded.alignment_with(loaded.options.translate);
  if (flags.alignment_layer) source = {*flags.alignment_layer, -1};
  if (flags.alignment_head) source.head = *flags.alignment_head;
  if (source.layer >= loaded.decoder_layers)
    throw UsageError("--alignment-layer is " + std::to_string(source.layer) + "; the decoder's layers are 0 to " +
                     std::to_string(loaded.decoder_layers - 1));
  if (source.head >= loaded.num_heads)
    throw UsageError("--alignment-head is " + std::to_string(source.head) + "; the heads are 0 to " + std::to_string(loaded.num_heads - 1));
  return source;
}

TranslatorSettings settings_of(const TranslateFlags& flags, const LoadedEnsemble& loaded) {
  const TranslateOptions& options = loaded.options.translate;
  const AlignmentSource source = alignment_source(flags, loaded);
  TranslatorSettings settings{options, AlignmentLevel::kNone, source.layer, flags.seed};
  if (!options.shortlist.empty()) settings.shortlist = read_shortlist(options.shortlist, loaded.vocabularies);
  const bool may_have_terms = flags.format.json || !flags.terms.empty();
  if (flags.alignment.empty() && !flags.splits && !may_have_terms && flags.document == DocumentFormat::kText) return settings;
  settings.alignment = flags.alignment.empty() || flags.alignment == "word" ? AlignmentLevel::kWord : AlignmentLevel::kPiece;
  settings.alignment_head = source.head;
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

/// Translates the input, or the lines of it that are left, to one output.
int translate_whole(LineReader& reader, Output& output, Translator& translator, const TextTranslation& how, TranslationProgress& progress) {
  const TranslatedText done = translate_text(reader, output, translator, how, progress);
  progress.finish();
  if (!done.is_read) return kBrokenPipe;
  output.finish();
  output.remove_parts();
  flags::require_none_passed_over(done.bad_lines, done.lines);
  return 0;
}

/// Reads the command line. Returns false if it asked for nothing more than was printed.
bool read_flags(CommandLine& app, TranslateFlags& flags, const std::vector<std::string>& arguments) {
  flags.declare(app);
  if (!app.read(arguments, search_options_help() + attention_help())) return false;
  flags.common.apply_log_level();
  if (flags.parts.is_status) {
    PartFlags::print_status(flags.output, flags.format.json);
    return false;
  }
  if (const auto bad = first_invalid_utf8(flags.prefix))
    throw UsageError("--prefix: byte " + std::to_string(*bad + 1) + " is not UTF-8; expected text");
  if (flags.input.empty()) throw UsageError("-i is empty; expected a file to read, or - for standard input");
  if (!flags.language.empty() && !flags.splits && flags.document == DocumentFormat::kText)
    throw UsageError("--language changes nothing without --split or --format html, srt or vtt");
  if (flags.splits && flags.alignment == "subword")
    throw UsageError("--alignment subword does not go with --split, whose texts are no lists of pieces; expected --alignment word");
  if (!flags.terms.empty() && flags.document != DocumentFormat::kText)
    throw UsageError("--terms go with plain text alone; leave out --terms or --format");
  if (!flags.terms.empty() && flags.alignment == "subword")
    throw UsageError("--alignment subword does not go with --terms, which are put where words are linked; expected --alignment word");
  if (flags.parts.are_given()) flags.parts.require_files(flags.output, {flags.input});
  return true;
}

int run_translate(const std::vector<std::string>& arguments) {
  CommandLine app("Translates text, line by line.", "lacuna translate");
  TranslateFlags flags;
  if (!read_flags(app, flags, arguments)) return 0;
  const std::string device = flags.common.prepared_device();
  std::optional<LineReader> reader;  // both: unless the text is translated in parts
  std::optional<Output> output;
  if (!flags.parts.are_given()) {
    if (flags.document == DocumentFormat::kText) reader.emplace(flags.input, flags.first_line);
    output.emplace(flags.output, std::vector{flags.input});
  }
  std::shared_ptr<const document::Terms> terms;
  if (!flags.terms.empty()) terms = std::make_shared<document::Terms>(document::read_terms(flags.terms));
  handle_interrupts();
  if (output) let_sigterm_end_reading();
  const std::vector<std::string> words = flags.overrides(app);
  const std::vector<LoadedModel> models = load_models(flags.models, device, words);
  LoadedEnsemble loaded = as_ensemble(models);
  restrict_search(loaded.options.translate, flags.models.front(), words);
  require_precision(loaded.options.translate.precision, device, words);
  warn_of_unused_flags(loaded.options.translate, app, words);
  flags.format.n_best = loaded.options.translate.n_best > 1 || app.count("--n-best") > 0;
  flags.format.alignment = !flags.alignment.empty();
  flags.format.takes_terms = flags.alignment != "subword";
  TranslationProgress progress(flags.input, flags.output, flags.common.quiet);
  TranslatorSettings settings = settings_of(flags, loaded);
  settings.on_sentence = [&progress] { progress.add_sentence(); };
  flags.format.paragraphs = flags.splits;
  flags.format.longest = loaded.options.data.max_length;
  flags.format.lines.common = loaded.options.translate;
  flags.format.tgt = loaded.vocabularies.tgt;
  TextTranslation how = {.prefix = flags.prefix, .format = flags.format, .bad_lines = flags.on_error};
  const bool is_document = flags.document != DocumentFormat::kText;
  if (flags.splits || is_document) how.splitting = splitting_for(loaded, flags.language, "--language");
  how.terms = std::move(terms);
  std::optional<JobFolder> job;
  if (!output)
    job = JobFolder::make_or_join(flags.output, flags.parts.cut, translation_terms(models, settings, how, flags.input, flags.terms),
                                  job_inputs({flags.input}));
  Translator translator(loaded.model, loaded.vocabularies, std::move(settings));
  const at::NoGradGuard no_gradients;
  if (is_document) {
    if (!translate_document(flags.input, *output, translator, flags.document, *how.splitting)) return kBrokenPipe;
    output->finish();
    return 0;
  }
  if (output) return translate_whole(*reader, *output, translator, how, progress);
  work_on_parts(*job, *translating_parts(flags.input, translator, how, progress));
  return 0;
}

}  // namespace

Verb translate_verb() {
  return {"translate", "translate text: beam search or sampling, n-best, alignments, ensembles", run_translate};
}

}  // namespace lacuna

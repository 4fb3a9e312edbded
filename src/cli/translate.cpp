#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "attention/registry.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/load_models.h"
#include "cli/output.h"
#include "cli/translation_format.h"
#include "cli/verb.h"
#include "model/weight_format.h"
#include "search/ensemble.h"
#include "search/translator.h"

namespace lacuna {
namespace {

struct ShortFlag {
  const char *flag, *key, *meaning;
};

/// Flags that stand for a configuration key.
constexpr ShortFlag kShortFlags[] = {
    {"-b,--beam-size", "beam_size", "Hypotheses kept at each step; 1 = greedy"},
    {"--n-best", "n_best", "Give so many translations of each line"},
    {"--length-penalty", "length_penalty", "Exponent of the length penalty; 0 = none"},
    {"--length-penalty-type", "length_penalty_type", "pow: n^a, gnmt: ((5+n)/6)^a, none"},
    {"--max-length-ratio", "max_length_ratio", "At most so many target tokens for each source token, plus 10 and the prefix"},
    {"--max-length", "max_length", "At most so many target tokens, the end of the sentence among them"},
    {"--min-length", "min_length", "At least so many target tokens, the end of the sentence among them: 2 = never empty"},
    {"--no-repeat-ngram-size", "no_repeat_ngram_size", "No n-gram of this size comes twice"},
    {"--repetition-penalty", "repetition_penalty", "Log-probabilities of tokens already there are multiplied by this"},
    {"--sampling", "sampling", "Draw tokens instead of searching: full, top_k or top_p"},
    {"--temperature", "temperature", "Of sampling"},
    {"--batch-tokens", "batch_tokens", "Source tokens translated at a time by each thread; where several translate, at most 1024"},
    {"--precision", "precision", "Of matrix products on the CPU: fp32, bf16x3, bf16, int8 or auto"},
    {"--shortlist", "shortlist", "File of lacuna shortlist: weigh only what may translate a sentence"},
};

struct TranslateFlags {
  std::vector<std::string> models;
  std::string input = "-", output = "-", prefix, alignment;
  int alignment_layer = -1;
  uint64_t seed = 1;
  TranslationFormat format;
  std::vector<std::string> values{std::size(kShortFlags)};
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", models, "Checkpoint or run folder; several, each after its own -m: an ensemble")
        ->required()
        ->allow_extra_args(false);
    app.add_option("-i,--input", input, "Text, one sentence a line, plain, gzip or zstd; - is standard input (the default)");
    app.add_option("-o,--output", output,
                   "File for the translations, packed if its name ends in .gz or .zst; - is standard output (the default)");
    for (size_t i = 0; i < values.size(); ++i) app.add_option(kShortFlags[i].flag, values[i], kShortFlags[i].meaning);
    app.add_option(
        "--prefix", prefix,
        "Text that every translation begins with, but for the empty one of an empty line; in JSON, \"prefix\" of a line comes first");
    auto* aligns = app.add_option("--alignment", alignment, "Add alignments (0-0 1-2) of words or of pieces: word or subword")
                       ->check(CLI::IsMember({"word", "subword"}));
    app.add_option("--alignment-layer", alignment_layer,
                   "Decoder layer whose cross attention aligns, 0 the lowest (default: the last but one)")
        ->check(whole_number_from(0))
        ->needs(aligns);
    auto* json = app.add_flag("--json", format.json,
                              "One JSON object a line, in and out: {\"text\": ...}; other fields are passed through, and those named as a "
                              "result has them are replaced");
    app.add_flag("--scores", format.scores, "Begin each line with its score and a tab; in JSON and n-best lists it is there anyway")
        ->excludes(json)
        ->excludes("--n-best");
    app.add_option("--seed", seed, "Of sampling (default: 1)")->check(whole_number_from(0));
    app.set_help_all_flag("--help-options",
                          "Print every key under `translate` and `model.attention` with its default, range and meaning, and end");
    common.declare_runtime(app);
    app.footer(
        "Every key under `translate` is a flag too: --translate.allow_unk true. So is every key under `model.attention`, as far as the\n"
        "checkpoint has the parameters: --model.attention.cross.sparsify train, --model.attention entmax15");
    app.allow_extras();
  }

  std::vector<std::string> overrides(const CLI::App& app) const {
    std::vector<std::string> words = overrides_of(app);
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string_view flag = kShortFlags[i].flag;
      if (app.count(std::string(flag.substr(flag.find("--")))) > 0)  // an empty value, too, is one to be read
        words.insert(words.end(), {std::string("--translate.") + kShortFlags[i].key, values[i]});
    }
    return words;
  }
};

/// The models as one, with the vocabularies and options of the first.
struct LoadedTranslator {
  std::vector<std::shared_ptr<Transformer>> members;
  StepModelPtr model;
  Vocabularies vocabularies;
  Options options;
  int decoder_layers = 0;  ///< that all models have
};

LoadedTranslator as_one(const std::vector<LoadedModel>& loaded) {
  LoadedTranslator result;
  result.vocabularies = loaded.front().vocabularies;
  result.options = loaded.front().options;
  std::vector<StepModelPtr> models;
  for (const LoadedModel& one : loaded) {
    result.members.push_back(one.model);
    models.push_back(std::make_shared<TransformerStepModel>(one.model));
    const int layers = static_cast<int>(one.options.model.decoder_layers);
    result.decoder_layers = models.size() == 1 ? layers : std::min(layers, result.decoder_layers);
  }
  result.model = models.size() == 1 ? models.front() : std::make_shared<Ensemble>(models);
  return result;
}

TranslatorSettings settings_of(const TranslateFlags& flags, const TranslateOptions& options, const Vocabularies& vocabularies, int layers) {
  TranslatorSettings settings{options, AlignmentLevel::kNone, flags.alignment_layer, flags.seed};
  if (!options.shortlist.empty()) settings.shortlist = read_shortlist(options.shortlist, vocabularies);
  if (flags.alignment.empty()) return settings;
  settings.alignment = flags.alignment == "word" ? AlignmentLevel::kWord : AlignmentLevel::kPiece;
  if (settings.alignment_layer < 0) settings.alignment_layer = std::max(0, layers - 2);
  if (settings.alignment_layer >= layers)
    throw UsageError("--alignment-layer is " + std::to_string(settings.alignment_layer) + "; the decoder's layers are 0 to " +
                     std::to_string(layers - 1));
  return settings;
}

/// What the input has to give without waiting for more, and whether there is more behind it.
struct Window {
  std::vector<InputLine> lines;
  bool more = true;
  std::exception_ptr bad_line;  ///< the DataError of the line behind `lines`, if it is a bad one
};

Window read_window(LineReader& reader, int64_t first_id, const TranslateFlags& flags) {
  constexpr size_t kBytesAtATime = 8 << 20;
  Window window;
  std::string text;
  size_t bytes = 0;
  const auto has_room = [&] { return window.lines.size() < kLinesAtATime && bytes < kBytesAtATime; };
  try {
    while (has_room() && (window.lines.empty() || !reader.would_wait()) && (window.more = reader.next(text))) {
      bytes += text.size();
      reader.require_clean(text);
      const int64_t id = first_id + static_cast<int64_t>(window.lines.size());
      window.lines.push_back(parse_input_line(text, id, reader.place(), flags.format));
      InputLine& line = window.lines.back();
      if (!line.fields.contains("prefix")) line.input.prefix = flags.prefix;
    }
  } catch (const DataError&) {
    window.bad_line = std::current_exception();
    window.more = false;
  }
  return window;
}

/// Says what of a line was not put to use, and what of its translation is missing or to be doubted; of the prefix that all lines have,
/// once. Of lines longer than those of training, and of translations that met a limit, there may be many: of the first at once, at the end
/// how many there are.
class LossWarnings {
 public:
  /// `longest`: data.max_length of training.
  LossWarnings(const std::string& common_prefix, int64_t longest) : common_prefix_(common_prefix), longest_(longest) {}

  void look_at(const TranslationInput& line, const TranslatedLine& translated) {
    if (translated.is_cropped) log_warning("line {} is longer than the model can read; its end is left out", line.id + 1);
    if (translated.src_pieces > longest_ && ++long_lines_ == 1)
      log_warning(
          "line {} has {} pieces, and the model was trained on sentences of {} at most (data.max_length): its translation may be poor; "
          "one sentence a line is expected",
          line.id + 1, translated.src_pieces, longest_);
    if (translated.translations.front().is_truncated && ++truncated_ == 1)
      log_warning(
          "line {}: its translation ends where it met a limit (--max-length, --max-length-ratio, or the model's positions), or no other "
          "token was allowed",
          line.id + 1);
    if (!translated.is_prefix_cropped && !translated.has_unknown_prefix) return;
    const bool is_common = line.prefix == common_prefix_;
    if (is_common && std::exchange(has_said_, true)) return;
    const std::string whose = is_common ? "--prefix" : fmt::format("line {}: its prefix", line.id + 1);
    if (translated.is_prefix_cropped)
      log_warning("{} is longer than a translation may be (--max-length, or the model's positions); its end is left out", whose);
    if (translated.has_unknown_prefix) log_warning("{} has what the vocabulary cannot write; the unknown token stands for it", whose);
  }

  void finish() const {
    if (long_lines_ > 1) log_warning("{} lines are longer than the sentences of training", long_lines_);
    if (truncated_ > 1) log_warning("{} translations end where they met a limit; with --json, \"truncated\" says which", truncated_);
  }

 private:
  const std::string& common_prefix_;
  const int64_t longest_;
  bool has_said_ = false;
  int64_t long_lines_ = 0;
  int64_t truncated_ = 0;
};

/// The lines of a file of which a progress bar can tell, up to a bad one, which is an error once the translations before it are there; 0
/// where nobody would see the bar, and where it would stand among translations.
int64_t lines_to_show(const TranslateFlags& flags) {
  std::error_code ignored;
  const bool is_seen = stderr_is_terminal() && !flags.common.quiet && flags.output != "-";
  if (!is_seen || !std::filesystem::is_regular_file(flags.input, ignored)) return 0;
  LineReader reader(flags.input);
  std::string text;
  try {
    while (reader.next(text)) continue;
  } catch (const DataError&) {
    return reader.line_number();
  }
  return reader.line_number();
}

/// Translates everything that the reader gives, as it comes. False if nobody reads the output any more. Throws DataError for a bad line,
/// those before it being translated.
bool translate_all(LineReader& reader, Output& output, Translator& translator, const TranslateFlags& flags, LossWarnings& warnings) {
  int64_t lines_in = 0, lines_out = 0;
  const int64_t total = lines_to_show(flags);
  LineProgress bar("translating", total, /*quiet=*/total == 0);
  for (bool more = true; more;) {
    const Window window = read_window(reader, lines_in, flags);
    const std::vector<InputLine>& lines = window.lines;
    lines_in += static_cast<int64_t>(lines.size());
    more = window.more;
    std::vector<TranslationInput> inputs;
    inputs.reserve(lines.size());
    for (const InputLine& line : lines) inputs.push_back(line.input);
    const std::vector<TranslatedLine> translated = translator.translate(inputs);
    bar.hide();  // for warnings
    std::string written;
    for (size_t i = 0; i < lines.size(); ++i, ++lines_out) {
      warnings.look_at(lines[i].input, translated[i]);
      written += format_translations(lines[i], translated[i], flags.format);
    }
    if (!output.write(written)) return false;
    bar.add(static_cast<int64_t>(lines.size()));
    if (window.bad_line) std::rethrow_exception(window.bad_line);
  }
  if (lines_in != lines_out)
    throw MachineError(std::to_string(lines_in) + " lines came in and " + std::to_string(lines_out) +
                       " went out; this is a fault of the program");
  bar.hide();
  warnings.finish();
  return true;
}

/// Warns of what was given on the command line, as in `words`, and is not read: what is of sampling, or of another way of it, unless it is
/// what it is by default, and the size of the beam where translations are drawn.
void warn_of_what_is_not_read(const TranslateOptions& options, const CLI::App& app, const std::vector<std::string>& words) {
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
  CLI::App app("Translates text, line by line.", "lacuna translate");
  TranslateFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments, search_options_help() + attention_help())) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.prepared_device();
  if (const auto bad = first_invalid_utf8(flags.prefix))
    throw UsageError("--prefix: byte " + std::to_string(*bad + 1) + " is not UTF-8; expected text");
  if (flags.input.empty()) throw UsageError("-i is empty; expected a file to read, or - for standard input");
  LineReader reader(flags.input);
  Output output(flags.output, {flags.input});
  const std::vector<std::string> words = flags.overrides(app);
  const LoadedTranslator loaded = as_one(load_models(flags.models, device, words));
  require_precision(loaded.options.translate.precision, device, words);
  warn_of_what_is_not_read(loaded.options.translate, app, words);
  flags.format.n_best = loaded.options.translate.n_best > 1 || app.count("--n-best") > 0;
  flags.format.alignment = !flags.alignment.empty();
  for (const auto& member : loaded.members) member->round_to(weight_format_of(loaded.options.translate.precision, member->device()));
  Translator translator(loaded.model, loaded.vocabularies,
                        settings_of(flags, loaded.options.translate, loaded.vocabularies, loaded.decoder_layers));
  const at::NoGradGuard no_gradients;
  LossWarnings warnings(flags.prefix, loaded.options.data.max_length);
  if (!translate_all(reader, output, translator, flags, warnings)) return kBrokenPipe;
  output.finish();
  return 0;
}

}  // namespace

Verb translate_verb() {
  return {"translate", "translate text: beam search or sampling, n-best, alignments, ensembles", run_translate};
}

}  // namespace lacuna

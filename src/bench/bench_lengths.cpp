#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

#include "attention/registry.h"
#include "base/log.h"
#include "base/output.h"
#include "base/spelling.h"
#include "bench/curves.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "data/batch.h"
#include "model/precision.h"
#include "model/transformer.h"
#include "search/search.h"
#include "speed/bench_trainer.h"
#include "speed/timing.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTypesFlag[] = "--types", kBaseline[] = "softmax";
constexpr int64_t kLongest = 1 << 20;
constexpr auto kIsBaseline = [](const auto& one) { return one.name == kBaseline; };

struct LengthBenchFlags {
  std::string types = "softmax,local: {type: softmax, pattern: {type: local, window: 32}},rela,{type: topk, k: 8},entmax15";
  std::vector<int64_t> lengths = {16, 32, 64, 128, 256, 512, 1024};
  int64_t batch_tokens = 4096, rounds = 3;
  std::string svg;
  bool json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.needs_config = false;
    common.declare_configuration(app);
    common.declare_runtime(app);
    app.add_option(kTypesFlag, types,
                   "Attentions: types, maps of what model.attention may be, named ones (name: {...}), or configuration files; softmax is "
                   "measured in any case (default: " +
                       types + ")");
    app.add_option("--lengths", lengths, "Tokens of a sentence on both sides, eos counted")->delimiter(',')->check(whole_number_from(2));
    app.add_option("--batch-tokens", batch_tokens, "Target tokens of a batch, of one sentence at least")->check(whole_number_from(1));
    app.add_option("--rounds", rounds, "Times each is measured, one after the other in turn; the median counts")
        ->check(whole_number_from(1));
    app.add_option("--svg", svg, "File for a picture of the curves");
    app.add_flag("--json", json, "Print one JSON object");
    app.footer(
        "Random sentences and first weights, so no corpus is read: sizes are those of -c, or else of the preset small, with "
        "data.vocab_size pieces. Training is a whole update on one batch, translating beam search on its sources, all at once, with "
        "translations as long as these. A choice that looks at distances has none on cross attention: there its type sees all keys (span: "
        "softmax).\nEvery key of the configuration is a flag too: --model.preset base, --translate.precision bf16");
  }
};

/// Throws for lengths that make no curve, and for those that the model can't read.
void require_lengths(const std::vector<int64_t>& lengths, const ModelOptions& model) {
  const auto falls = std::adjacent_find(lengths.begin(), lengths.end(), std::greater_equal<>());
  if (falls != lengths.end())
    throw UsageError(fmt::format("--lengths: {} comes after {}; expected lengths that grow: 16,64,256", *(falls + 1), *falls));
  const int64_t longest = lengths.back();
  if (longest > kLongest) throw UsageError(fmt::format("--lengths: {} is too long; expected at most {}", longest, kLongest));
  if (model.positions == Positions::kLearned && longest > model.max_positions)
    throw ConfigError(
        fmt::format("--lengths: {} is more than model.max_positions, which is {}; leave it out, or add --model.max_positions {}", longest,
                    model.max_positions, longest));
}

/// Throws for options that need what this benchmark does without: pieces of text, or another device.
void require_no_more(const Options& options) {
  if (!options.translate.shortlist.empty() || !options.translate.block_tokens.empty())
    throw ConfigError("lacuna-bench lengths knows no pieces of text; leave translate.shortlist and translate.block_tokens empty");
  if (options.device != "cpu")
    throw ConfigError("device is \"" + options.device + "\"; lacuna-bench lengths measures the CPU: --device cpu");
}

/// `attention`, if it is a choice for the whole model that looks at distances, with another one for cross attention, where there are none.
ConfigNode with_cross_of_its_own(const ConfigNode& attention, int64_t num_heads) {
  if (!attention.is_scalar() && attention.find("type") == nullptr) return attention;
  const auto type = make_attention_type(attention, num_heads);
  const bool by_type = type->entry().info.needs_distance;
  if (!by_type && !type->needs_distance()) return attention;
  const ConfigNode cross =
      by_type ? ConfigNode::scalar(kBaseline) : ConfigNode::map({{"pattern", ConfigNode::scalar("full")}}, attention.place());
  ConfigNode sites = ConfigNode::map({{"default", attention}, {"cross", cross}}, attention.place());
  sites.set_path(attention.path());
  return sites;
}

/// What --types asks for, with softmax before it unless it is there.
std::vector<NamedOptions> systems_of(const std::string& types, const std::vector<Variant>& defined, const Options& options) {
  std::vector<Variant> variants = parse_variants(types, kTypesFlag, defined, types::known_types());
  if (std::none_of(variants.begin(), variants.end(), kIsBaseline))
    variants.insert(variants.begin(), parse_variants(kBaseline, kTypesFlag, {}, types::known_types()).front());
  std::vector<NamedOptions> systems;
  systems.reserve(variants.size());
  for (const Variant& variant : variants)
    systems.push_back(
        {variant.name, with_attention(options, with_cross_of_its_own(attention_of(variant, kTypesFlag), options.model.num_heads))});
  return systems;
}

/// Microseconds per target token of the batch with each configuration, medians over `rounds` in turn. Every configuration has a model of
/// its own with initial weights.
using MicrosecondsPerToken = std::vector<double>;

std::vector<SearchInput> sources_of(const Batch& batch) {
  std::vector<SearchInput> inputs;
  for (int64_t b = 0; b < batch.src_shape->num_sentences(); ++b) {
    const auto begin = batch.src.begin() + batch.src_shape->begin(b);
    inputs.push_back({{begin, begin + batch.src_shape->length(b)}, {}, b});
  }
  return inputs;
}

/// One model that translates the sources of one batch again and again.
class BatchTranslator {
 public:
  BatchTranslator(const Options& options, const VocabularySizes& sizes, const Batch& batch)
      : model_(std::make_shared<Transformer>(options.model, sizes, options.seed_value())),
        step_model_(model_),
        inputs_(sources_of(batch)),
        settings_(settings_of(options, batch.src_shape->max_length())) {
    model_->round_to(translating_precision(options.translate.precision, at::Device(options.device)));
    model_->eval();
  }

  void translate() {
    const at::NoGradGuard no_gradients;
    search(step_model_, inputs_, settings_);
  }

 private:
  static SearchSettings settings_of(const Options& options, int64_t length) {
    const TranslateOptions translate = with_forced_length(options, length).translate;
    return {translate, Constraints(translate, std::vector<TokenId>())};
  }

  std::shared_ptr<Transformer> model_;
  TransformerStepModel step_model_;
  std::vector<SearchInput> inputs_;
  SearchSettings settings_;
};

MicrosecondsPerToken measured(std::vector<Timed> all, const Batch& batch, int64_t rounds) {
  time_in_turn(all, rounds);
  MicrosecondsPerToken costs;
  for (const Timed& timed : all) costs.push_back(1e3 * timed.median_ms() / static_cast<double>(batch.tgt_tokens()));
  return costs;
}

/// Returns the cost of updates on this batch: forward, backward and optimizer.
MicrosecondsPerToken training_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                   int64_t rounds) {
  std::vector<Timed> trainers;
  for (const NamedOptions& one : all) {
    Options options = one.options;
    options.train.update_freq = 1;
    const auto trainer = std::make_shared<BenchTrainer>(options, sizes);
    trainers.push_back({[=] { trainer->update({batch}); }});
  }
  return measured(std::move(trainers), *batch, rounds);
}

/// Returns the cost of beam search on all sources of the batch at once, with translations as long as the sources.
MicrosecondsPerToken translating_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                      int64_t rounds) {
  std::vector<Timed> translators;
  for (const NamedOptions& one : all) {
    const auto translator = std::make_shared<BatchTranslator>(one.options, sizes, *batch);
    translators.push_back({[=] { translator->translate(); }});
  }
  return measured(std::move(translators), *batch, rounds);
}

/// The costs of one length, a line for each system.
void add_lines(const std::vector<NamedOptions>& systems, const LengthBenchFlags& flags, int64_t length, Json& lines) {
  const Options& options = systems.front().options;
  const int64_t vocab_size = options.data.vocab_size;
  const VocabularySizes sizes{.src = vocab_size, .tgt = vocab_size, .shared = true};
  const int64_t sentences = std::max<int64_t>(1, flags.batch_tokens / length);
  const BatchPtr batch = random_batch({.tokens = sentences * length,
                                       .sentence_length = length,
                                       .src_pieces = vocab_size,
                                       .tgt_pieces = vocab_size,
                                       .seed = options.seed_value()});
  const MicrosecondsPerToken training = training_cost(systems, sizes, batch, flags.rounds);
  const MicrosecondsPerToken translating = translating_cost(systems, sizes, batch, flags.rounds);
  const auto baseline = static_cast<size_t>(std::find_if(systems.begin(), systems.end(), kIsBaseline) - systems.begin());
  for (size_t i = 0; i < systems.size(); ++i)
    lines.push_back({{"length", length},
                     {"type", systems[i].name},
                     {"sentences", sentences},
                     {"train_us_per_token", training[i]},
                     {"train_ratio", training[i] / training[baseline]},
                     {"translate_us_per_token", translating[i]},
                     {"translate_ratio", translating[i] / translating[baseline]}});
  log_info("sentences of {} tokens: with softmax {} us a token to train, {} to translate", length, short_number(training[baseline]),
           short_number(translating[baseline]));
}

Json measure(const std::vector<NamedOptions>& systems, const LengthBenchFlags& flags) {
  const Options& options = systems.front().options;
  Json report = {{"precision", name_of(factor_precision(options.train.precision, options.device))},
                 {"translate_precision", name_of(translating_precision(options.translate.precision, at::Device(options.device)))},
                 {"threads", at::get_num_threads()},
                 {"beam_size", options.translate.beam_size},
                 {"batch_tokens", flags.batch_tokens},
                 {"vocab_size", options.data.vocab_size},
                 {"rounds", flags.rounds},
                 {"types", Json::array()},
                 {"lines", Json::array()}};
  for (const NamedOptions& system : systems)
    report["types"].push_back({{"type", system.name}, {"in_full", attention_in_full(system.options)}});
  for (const int64_t length : flags.lengths) add_lines(systems, flags, length, report["lines"]);
  return report;
}

CurvePanel panel_of(const Json& report, const std::string& title, const char* key) {
  CurvePanel panel{.title = title};
  for (const Json& type : report["types"]) {
    Curve curve{.name = type["type"].get<std::string>()};
    for (const Json& line : report["lines"])
      if (line["type"] == type["type"]) curve.values.push_back(line[key].get<double>());
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

CurvePicture picture_of(const Json& report, const std::vector<int64_t>& lengths) {
  const std::string subtitle =
      fmt::format("training in {}, translating in {} with beam {}; batches of {} target tokens, {}", report["precision"].get<std::string>(),
                  report["translate_precision"].get<std::string>(), report["beam_size"].dump(), report["batch_tokens"].dump(),
                  counted(report["threads"].get<int64_t>(), "thread"));
  return {.title = "What a token costs, by the length of its sentence",
          .subtitle = subtitle,
          .x_label = "tokens of a sentence, source and target alike",
          .lengths = lengths,
          .panels = {panel_of(report, "training, µs a target token", "train_us_per_token"),
                     panel_of(report, "translating, µs a target token", "translate_us_per_token")}};
}

void print_length_lines(const Json& lines) {
  std::vector<std::vector<std::string>> rows = {{"length", "type", "train us/token", "/ softmax", "translate us/token", "/ softmax"}};
  for (const Json& line : lines) {
    const auto number = [&](const char* key) { return short_number(line[key].get<double>()); };
    rows.push_back({line["length"].dump(), line["type"].get<std::string>(), number("train_us_per_token"), number("train_ratio"),
                    number("translate_us_per_token"), number("translate_ratio")});
  }
  print_table(rows);
}

int bench_lengths(const std::vector<std::string>& arguments) {
  CommandLine app("What a token costs to train and to translate as sentences grow, with each attention type.", "lacuna-bench lengths");
  LengthBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  std::vector<Variant> defined;
  const std::optional<Configuration> configuration = flags.common.configuration(app, &defined);
  if (!configuration) return 0;
  const Options& options = configuration->options;
  require_lengths(flags.lengths, options.model);
  require_no_more(options);
  const std::vector<NamedOptions> systems = systems_of(flags.types, defined, options);
  std::optional<Output> svg;
  if (!flags.svg.empty()) svg.emplace(flags.svg);  // for its errors, before long work
  const Json report = measure(systems, flags);
  if (svg) {
    svg->write(svg_curves(picture_of(report, flags.lengths)));
    svg->finish();
  }
  print_report(report, flags.json);
  if (!flags.json) print_length_lines(report["lines"]);
  return 0;
}

}  // namespace

Verb lengths_verb() {
  return {"lengths", "what a token costs to train and to translate as sentences grow", bench_lengths};
}

}  // namespace lacuna

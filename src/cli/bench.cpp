#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/product_timer.h"
#include "cli/verb.h"
#include "data/batch_stream.h"
#include "data/training_data.h"
#include "search/translator.h"
#include "train/learning_rate.h"
#include "train/optimizer.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double peak_mebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void print(const ordered_json& report, bool json) {
  if (json) {
    std::cout << report.dump(2) << "\n";
    return;
  }
  for (const auto& [key, value] : report.items())
    std::cout << fmt::format("{:<28} {}\n", key, value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump());
}

/// One update, as the trainer makes it, timed.
struct TimedUpdate {
  double seconds = 0, product_seconds = 0;
  int64_t tgt_tokens = 0;
};

class TrainBench {
 public:
  TrainBench(Options options, const std::string& folder)
      : options_(std::move(options)),
        data_(open_training_data(options_.data, folder, options_.train.batch_tokens.value.value_or(4096), options_.seed_value())),
        model_(std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value())),
        optimizer_(FlatParameters(trained_parameters(*model_)), options_.train),
        loss_(transformer_loss(model_, options_.train, options_.device)),
        stream_(make_batch_stream(data_.plan)) {}

  TimedUpdate update() {
    const auto begin = Clock::now();
    const double products_before = products_.seconds();
    TimedUpdate timed;
    for (int64_t i = 0; i < options_.train.update_freq; ++i) {
      const auto batch = stream_->next();
      loss_(*batch, {.training = true, .seed = options_.seed_value(), .step = step_}).loss.backward();
      timed.tgt_tokens += batch->tgt_tokens();
    }
    ++step_;
    optimizer_.update(options_.train.lr, 1.0 / static_cast<double>(timed.tgt_tokens));
    timed.seconds = seconds_since(begin);
    timed.product_seconds = products_.seconds() - products_before;
    return timed;
  }

  double seconds_waited() const { return stream_->seconds_waited(); }

 private:
  Options options_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  Optimizer optimizer_;
  LossFunction loss_;
  std::unique_ptr<BatchStream> stream_;
  ProductTimer products_;
  int64_t step_ = 0;
};

int bench_train(const std::vector<std::string>& arguments) {
  CLI::App app("Target tokens per second of training, the share of matrix products, data wait and peak memory.", "lacuna bench train");
  CommonFlags flags;
  int64_t steps = 30, warmup = 5;
  bool json = false;
  std::string folder = "runs/bench";
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  app.add_option("--steps", steps, "Updates that are timed (default: 30)")->check(whole_number_from(1));
  app.add_option("--warmup", warmup, "Updates before them (default: 5)")->check(whole_number_from(0));
  app.add_option("--folder", folder, "Where vocabulary and token cache are kept (default: runs/bench)");
  app.add_flag("--json", json, "Print one JSON object");
  if (!parse_command_line(app, arguments)) return 0;
  const std::optional<Options> options = flags.configuration(app);
  if (!options) return 0;
  TrainBench bench(*options, folder);
  for (int64_t i = 0; i < warmup; ++i) bench.update();
  const double waited_before = bench.seconds_waited();
  std::vector<double> rates;
  double seconds = 0, product_seconds = 0;
  int64_t tokens = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const TimedUpdate one = bench.update();
    rates.push_back(static_cast<double>(one.tgt_tokens) / one.seconds);
    seconds += one.seconds;
    product_seconds += one.product_seconds;
    tokens += one.tgt_tokens;
  }
  print({{"tgt_tokens_per_second", median(rates)},
         {"tgt_tokens_per_update", static_cast<double>(tokens) / static_cast<double>(steps)},
         {"ms_per_update", 1e3 * seconds / static_cast<double>(steps)},
         {"matrix_product_share", product_seconds / seconds},
         {"data_wait_share", (bench.seconds_waited() - waited_before) / seconds},
         {"peak_mebibytes", peak_mebibytes()},
         {"threads", at::get_num_threads()},
         {"updates", steps}},
        json);
  return 0;
}

int bench_translate(const std::vector<std::string>& arguments) {
  CLI::App app("Output tokens and sentences per second of translating, the share of matrix products and peak memory.",
               "lacuna bench translate");
  CommonFlags flags;
  std::string model, input;
  int64_t rounds = 3;
  bool json = false;
  app.add_option("-m,--model", model, "Checkpoint or run folder")->required();
  app.add_option("-i,--input", input, "Text to translate, plain or gzip")->required();
  app.add_option("--rounds", rounds, "Times the whole text is translated; the median counts (default: 3)")->check(whole_number_from(1));
  app.add_flag("--json", json, "Print one JSON object");
  flags.declare_runtime(app);
  app.allow_extras();
  if (!parse_command_line(app, arguments)) return 0;
  flags.apply_log_level();
  use_threads(std::max<int64_t>(flags.threads, 0));
  std::vector<TranslationInput> lines;
  std::string text;
  for (LineReader reader(input); reader.next(text);) lines.push_back({text, "", reader.line_number()});
  const auto begin_load = Clock::now();
  const LoadedModel loaded = load_model(model);
  const Options options = with_overrides(loaded.options, app.remaining());
  const double load_seconds = seconds_since(begin_load);
  Translator translator(std::make_shared<TransformerStepModel>(loaded.model), loaded.vocabularies, {options.translate});
  const at::NoGradGuard no_gradients;
  ProductTimer products;
  std::vector<double> seconds;
  int64_t tokens = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    tokens = 0;
    for (const TranslatedLine& line : translator.translate(lines))
      tokens += static_cast<int64_t>(line.translations.front().tokens.size()) + 1;
    seconds.push_back(seconds_since(begin));
  }
  double all_seconds = 0;
  for (const double one : seconds) all_seconds += one;
  print({{"output_tokens_per_second", static_cast<double>(tokens) / median(seconds)},
         {"sentences_per_second", static_cast<double>(lines.size()) / median(seconds)},
         {"matrix_product_share", products.seconds() / all_seconds},
         {"load_seconds", load_seconds},
         {"peak_mebibytes", peak_mebibytes()},
         {"threads", at::get_num_threads()},
         {"beam_size", options.translate.beam_size},
         {"rounds", rounds}},
        json);
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (what == "train") return bench_train(rest);
  if (what == "translate") return bench_translate(rest);
  throw UsageError("\"" + what + "\" is not something to measure; expected train or translate");
}

}  // namespace

Verb bench_verb() {
  return {"bench", "tokens per second of training and translating, and where the time goes", run};
}

}  // namespace lacuna

#include <ATen/Parallel.h>

#include "checkpoint/checkpoint.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/product_timer.h"
#include "data/batch_stream.h"
#include "data/training_data.h"
#include "train/optimizer.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

struct TrainBenchFlags {
  int64_t steps = 30, warmup = 5;
  std::string folder = "runs/bench";
  bool json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.declare_configuration(app);
    common.declare_runtime(app);
    app.add_option("--steps", steps, "Updates that are timed (default: 30)")->check(whole_number_from(1));
    app.add_option("--warmup", warmup, "Updates before them (default: 5)")->check(whole_number_from(0));
    app.add_option("--folder", folder, "Where vocabulary and token cache are kept (default: runs/bench)");
    app.add_flag("--json", json, "Print one JSON object");
  }
};

/// Updates as the trainer makes them.
class TrainBench {
 public:
  TrainBench(Options options, const std::string& folder)
      : options_(std::move(options)),
        data_(open_training_data(options_.data, folder, options_.train.batch_tokens.value.value_or(4096), options_.seed_value())),
        model_(std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value())),
        optimizer_(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges()),
        loss_(transformer_loss(model_, options_.train, options_.device)),
        stream_(make_batch_stream(data_.plan)) {}

  /// Its target tokens.
  int64_t update() {
    int64_t tokens = 0;
    bool with_masks = false;
    for (int64_t i = 0; i < options_.train.update_freq; ++i) {
      const auto batch = stream_->next();
      const LossSums losses = loss_(*batch, {.training = true, .seed = options_.seed_value(), .step = step_});
      losses.backward();
      with_masks = losses.has_mask_pass();
      tokens += batch->tgt_tokens();
    }
    ++step_;
    optimizer_.update(options_.train.lr, 1.0 / static_cast<double>(tokens), with_masks);
    return tokens;
  }

  nlohmann::ordered_json measure(int64_t steps) {
    const double waited_before = stream_->seconds_waited();
    const ProductTimer products;
    const Stopwatch whole;
    std::vector<double> rates;
    int64_t tokens = 0;
    for (int64_t i = 0; i < steps; ++i) {
      const Stopwatch one;
      const int64_t count = update();
      rates.push_back(static_cast<double>(count) / one.seconds());
      tokens += count;
    }
    const double seconds = whole.seconds(), updates = static_cast<double>(steps);
    const bool is_bf16 = decided_precision(options_.train.precision, options_.device) == Precision::kBf16;
    return {{"tgt_tokens_per_second", median(rates)},
            {"tgt_tokens_per_update", static_cast<double>(tokens) / updates},
            {"ms_per_update", 1e3 * seconds / updates},
            {"matrix_product_share", products.seconds() / seconds},
            {"data_wait_share", (stream_->seconds_waited() - waited_before) / seconds},
            {"peak_mebibytes", peak_mebibytes()},
            {"precision", is_bf16 ? "bf16" : "fp32"},
            {"threads", at::get_num_threads()},
            {"updates", steps}};
  }

 private:
  Options options_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  Optimizer optimizer_;
  LossFunction loss_;
  std::unique_ptr<BatchStream> stream_;
  int64_t step_ = 0;
};

}  // namespace

int bench_train(const std::vector<std::string>& arguments) {
  CLI::App app("Target tokens per second of training, the share of matrix products, data wait and peak memory.", "lacuna bench train");
  TrainBenchFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  const std::optional<Options> options = flags.common.configuration(app);
  if (!options) return 0;
  TrainBench bench(*options, flags.folder);
  for (int64_t i = 0; i < flags.warmup; ++i) bench.update();
  print_report(bench.measure(flags.steps), flags.json);
  return 0;
}

}  // namespace lacuna

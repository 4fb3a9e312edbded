#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/log.h"
#include "base/profile.h"
#include "base/statistics.h"
#include "checkpoint/checkpoint.h"
#include "cli/bench_report.h"
#include "cli/bench_trainer.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/paired_bench.h"
#include "cli/products_alone.h"
#include "data/batch_stream.h"
#include "data/training_data.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

struct TrainBenchFlags {
  int64_t steps = 30, warmup = 5, pairs = 21;
  std::string folder = "runs/bench", compare;
  bool json = false, profile = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.declare_configuration(app);
    common.declare_runtime(app);
    auto* timed = app.add_option("--steps", steps, "Updates that are timed (default: 30)")->check(whole_number_from(1));
    app.add_option("--warmup", warmup, "Updates before them, and before the pairs of --compare (default: 5)")->check(whole_number_from(0));
    app.add_flag("--profile", profile, "Say where each millisecond of an update goes, forward and backward; CPU only");
    auto* compares = app.add_option("--compare", compare,
                                    std::string(kCompareHelp) +
                                        ". A pair is one update with each, on the same batches; softmax against itself is the control")
                         ->excludes(timed);
    app.add_option("--pairs", pairs, "Pairs of updates with --compare, at least 9 (default: 21)")
        ->check(whole_number_from(kFewestPairs))
        ->needs(compares);
    app.add_option("--folder", folder, "Where vocabulary and token cache are kept (default: runs/bench)");
    app.add_flag("--json", json, "Print one JSON object");
  }
};

/// Training data, an update's batches at a time.
class Batches {
 public:
  Batches(const Options& options, const std::string& folder)
      : data_(open_training_data(options.data, folder, options.train.batch_tokens.value.value_or(4096), options.seed_value())),
        per_update_(options.train.update_freq),
        stream_(make_batch_stream(data_.plan)) {}

  std::vector<BatchPtr> next() {
    const TimedPart timed(ProfilePart::kDataWait);
    std::vector<BatchPtr> batches;
    for (int64_t i = 0; i < per_update_; ++i) batches.push_back(stream_->next());
    return batches;
  }
  double seconds_waited() const { return stream_->seconds_waited(); }
  VocabularySizes sizes() const { return sizes_of(data_.vocabularies); }

 private:
  TrainingData data_;
  int64_t per_update_;
  std::unique_ptr<BatchStream> stream_;
};

/// What any number of these benchmarks belongs to.
Json setting_of(const Options& options) {
  return {{"precision", name_of(factor_precision(options.train, options.device))},
          {"device", options.device},
          {"threads", at::get_num_threads()}};
}

Json lengths_of(const BatchTokens& tokens, int64_t updates) {
  return {{"tgt_tokens_per_update", static_cast<double>(tokens.tgt) / static_cast<double>(updates)},
          {"mean_src_length", tokens.mean_src_length()},
          {"mean_tgt_length", tokens.mean_tgt_length()}};
}

double seconds_of_products(const Profile& profile) {
  return profile.seconds(ProfilePart::kProducts, false) + profile.seconds(ProfilePart::kProducts, true);
}

/// Milliseconds of an update by part, and the speed of its products, there and alone. The profile has ended.
Json profile_report(const Profile& profile, int64_t updates) {
  const auto per_update = [&](double amount) { return amount / static_cast<double>(updates); };
  Json parts = Json::array();
  for (const ProfilePart part : kProfileParts)
    parts.push_back({{"part", name_of(part)},
                     {"forward_ms", per_update(1e3 * profile.seconds(part, false))},
                     {"backward_ms", per_update(1e3 * profile.seconds(part, true))}});
  const auto products = ProfilePart::kProducts;
  const double work = profile.work(products, false) + profile.work(products, true);
  return {{"product_gflop_per_update", per_update(1e-9 * work)},
          {"product_gflops", 1e-9 * work / seconds_of_products(profile)},
          {"product_gflops_alone", 1e-9 * work / seconds_of_products_alone(profile)},
          {"parts", parts}};
}

void print_profile(const Json& profile) {
  double whole = 0;
  for (const Json& part : profile["parts"]) whole += part["forward_ms"].get<double>() + part["backward_ms"].get<double>();
  std::vector<std::vector<std::string>> rows = {{"part", "forward ms", "backward ms", "share"}};
  for (const Json& part : profile["parts"]) {
    const double forward = part["forward_ms"].get<double>(), backward = part["backward_ms"].get<double>();
    rows.push_back({part["part"].get<std::string>(), fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward),
                    fmt::format("{:.1f} %", 100 * (forward + backward) / whole)});
  }
  const double speed = profile["product_gflops"].get<double>(), alone = profile["product_gflops_alone"].get<double>();
  std::cout << fmt::format(
      "products                     {:.4g} GFLOP an update at {:.4g} GFLOP/s: {:.3f} of the {:.4g} that they reach alone\n",
      profile["product_gflop_per_update"].get<double>(), speed, speed / alone, alone);
  print_table(rows);
}

Json measure(const Options& options, const TrainBenchFlags& flags) {
  Batches batches(options, flags.folder);
  BenchTrainer trainer(options, batches.sizes());
  for (int64_t i = 0; i < flags.warmup; ++i) trainer.update(batches.next());

  const double waited_before = batches.seconds_waited();
  Profile profile;
  const Stopwatch whole;
  std::vector<double> rates;
  BatchTokens tokens;
  for (int64_t i = 0; i < flags.steps; ++i) {
    const Stopwatch one;
    const int64_t before = tokens.tgt;
    const std::vector<BatchPtr> of_update = batches.next();
    tokens.add(of_update);
    trainer.update(of_update);
    rates.push_back(static_cast<double>(tokens.tgt - before) / one.seconds());
  }
  const double seconds = whole.seconds();
  profile.end();
  Json report;
  report["tgt_tokens_per_second"] = median(rates);
  report.update(lengths_of(tokens, flags.steps));
  report.update({{"ms_per_update", 1e3 * seconds / static_cast<double>(flags.steps)},
                 {"data_wait_share", (batches.seconds_waited() - waited_before) / seconds}});
  if (is_cpu(options.device)) report["matrix_product_share"] = seconds_of_products(profile) / seconds;
  report["peak_mebibytes"] = peak_mebibytes(at::Device(options.device));
  report.update(setting_of(options));
  report["updates"] = flags.steps;
  if (flags.profile) report["profile"] = profile_report(profile, flags.steps);
  return report;
}

/// Every variant against softmax, with models of their own that get the same batches.
Json compare(const Options& options, const std::vector<Variant>& defined, const TrainBenchFlags& flags) {
  const std::vector<Variant> variants = variants_with_control(flags.compare, defined, options);
  const Options baseline = with_attention(options, variants.front());
  Batches batches(options, flags.folder);
  BatchTokens tokens;
  Json comparisons = Json::array();
  for (const Variant& variant : variants) {
    const Options changed = with_attention(options, variant);
    BenchTrainer with_softmax(baseline, batches.sizes()), with_variant(changed, batches.sizes());
    PairedSeconds seconds;
    for (int64_t i = 0; i < flags.warmup + flags.pairs; ++i) {
      if (i == flags.warmup) seconds = {};
      const std::vector<BatchPtr> of_pair = batches.next();
      tokens.add(of_pair);
      seconds.measure([&] { with_softmax.update(of_pair); }, [&] { with_variant.update(of_pair); });
    }
    comparisons.push_back(comparison(variant, changed, seconds));
    log_info("{}: {:.3f} of softmax's time", variant.name, comparisons.back()["ratio"].get<double>());
  }
  Json report = setting_of(options);
  report.update(lengths_of(tokens, static_cast<int64_t>(variants.size()) * (flags.warmup + flags.pairs)));
  report["comparisons"] = std::move(comparisons);
  return report;
}

}  // namespace

int bench_train(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Target tokens per second of training, data wait, peak memory, and on the CPU the share of matrix products; or, with --compare, "
      "the time of an update with other attention types over softmax's.",
      "lacuna bench train");
  TrainBenchFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  if (flags.profile && !flags.compare.empty()) throw UsageError("--profile is of one attention; leave --compare out, or --profile");
  std::vector<Variant> defined;
  const std::optional<Options> options = flags.common.configuration(app, &defined);
  if (!options) return 0;
  if (flags.profile && !is_cpu(options->device))
    throw UsageError("--profile is of the CPU, and device is \"" + options->device + "\"; leave --profile out, or use --device cpu");
  if (!flags.compare.empty()) {
    print_comparisons(compare(*options, defined, flags), flags.json);
    return 0;
  }
  const Json report = measure(*options, flags);
  print_report(report, flags.json);
  if (flags.profile && !flags.json) print_profile(report["profile"]);
  return 0;
}

}  // namespace lacuna

#include "speed/training_speed.h"

#include <numeric>

#include "base/device.h"
#include "base/statistics.h"
#include "kernels/profile.h"
#include "speed/bench_trainer.h"
#include "speed/gpu_trace.h"
#include "speed/product_timer.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

Json lengths_of(const BatchTokens& tokens, int64_t updates) {
  return {{"tgt_tokens_per_update", static_cast<double>(tokens.tgt) / static_cast<double>(updates)},
          {"mean_src_length", tokens.mean_src_length()},
          {"mean_tgt_length", tokens.mean_tgt_length()}};
}

double seconds_of_products(const Profile& profile) {
  return profile.seconds(ProfilePart::kProducts, false) + profile.seconds(ProfilePart::kProducts, true);
}

/// Returns the milliseconds of an update by part, and the speed of its products there and alone. REQUIRES: the profile has ended.
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

/// Returns what a GPU does in an update, by a trace of a few. An update takes `wall_ms` untraced.
Json gpu_profile(BenchTrainer& trainer, BenchBatches& batches, at::Device device, double wall_ms) {
  constexpr int64_t kTraced = 5;
  const auto some_updates = [&] {
    for (int64_t i = 0; i < kTraced; ++i) trainer.update(batches.next());
  };
  return report_of(GpuTrace(traced(device, some_updates)), kTraced, wall_ms);
}

}  // namespace

Json training_speed(const Options& options, const TimedUpdates& updates, bool has_profile) {
  BenchBatches batches(options, updates.folder);
  BenchTrainer trainer(options, batches.sizes());
  for (int64_t i = 0; i < updates.warmup; ++i) trainer.update(batches.next());

  const at::Device device(options.device);
  const double waited_before = batches.seconds_waited();
  Profile profile;
  BatchTokens tokens;
  std::vector<int64_t> tokens_of_update;
  tokens_of_update.reserve(static_cast<size_t>(updates.timed));
  Laps laps(device);
  for (int64_t i = 0; i < updates.timed; ++i) {
    const int64_t before = tokens.tgt;
    const std::vector<BatchPtr> of_update = batches.next();
    tokens.add(of_update);
    trainer.update(of_update);
    tokens_of_update.push_back(tokens.tgt - before);
    laps.end();
  }
  const std::vector<double> lap_seconds = laps.seconds();
  profile.end();
  std::vector<double> rates;
  rates.reserve(lap_seconds.size());
  for (size_t i = 0; i < lap_seconds.size(); ++i) rates.push_back(static_cast<double>(tokens_of_update[i]) / lap_seconds[i]);
  const double seconds = std::accumulate(lap_seconds.begin(), lap_seconds.end(), 0.0);
  const double ms_per_update = 1e3 * seconds / static_cast<double>(updates.timed);
  Json report;
  report["tgt_tokens_per_second"] = median(rates);
  report.update(lengths_of(tokens, updates.timed));
  report.update({{"ms_per_update", ms_per_update}, {"data_wait_share", (batches.seconds_waited() - waited_before) / seconds}});
  if (device.is_cpu()) report["matrix_product_share"] = seconds_of_products(profile) / seconds;
  report["peak_mebibytes"] = peak_mebibytes(device);
  report.update(setting_of(options));
  report["updates"] = updates.timed;
  if (has_profile)
    report["profile"] = device.is_cpu() ? profile_report(profile, updates.timed) : gpu_profile(trainer, batches, device, ms_per_update);
  return report;
}

Json training_comparisons(const std::vector<NamedOptions>& compared, const TimedUpdates& updates) {
  const Options& baseline = compared.front().options;
  const int64_t all_updates = updates.warmup + updates.timed;
  BenchBatches batches(baseline, updates.folder);
  BatchTokens tokens;
  Json comparisons = Json::array();
  for (const NamedOptions& other : compared) {
    BenchTrainer with_softmax(baseline, batches.sizes()), with_other(other.options, batches.sizes());
    PairedSeconds seconds;
    for (int64_t i = 0; i < all_updates; ++i) {
      if (i == updates.warmup) seconds = {};
      const std::vector<BatchPtr> of_pair = batches.next();
      tokens.add(of_pair);
      seconds.measure([&] { with_softmax.update(of_pair); }, [&] { with_other.update(of_pair); });
    }
    comparisons.push_back(comparison(other, seconds));
  }
  Json report = setting_of(baseline);
  report.update(lengths_of(tokens, static_cast<int64_t>(compared.size()) * all_updates));
  report["comparisons"] = std::move(comparisons);
  return report;
}

}  // namespace lacuna

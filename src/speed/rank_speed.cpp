#include "speed/rank_speed.h"

#include <ATen/ATen.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/device.h"
#include "base/statistics.h"
#include "base/stopwatch.h"
#include "ranks/stage.h"
#include "speed/bench_trainer.h"
#include "speed/scaling.h"
#include "train/shard.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 5;                           // of each measurement of messages, after one that does not count
constexpr int64_t kMessages = 500;                   // at once
constexpr int64_t kEstimatedRanks[] = {8, 64, 512};  // beside those that are there
constexpr double kEstimatedGigabits[] = {1, 10, 25, 100};
constexpr double kBitsInByte = 8, kGiga = 1e9, kMega = 1e6, kMicro = 1e-6;

/// Waits until all ranks are here.
void meet(Group& group) {
  group.gather_to_all("");
}

/// Returns the mean of a number over the ranks, at all of them.
double mean_over_ranks(Group& group, double own) {
  double sum = 0;
  for (const std::string& bytes : group.gather_to_all({reinterpret_cast<const char*>(&own), sizeof own})) {
    double one = 0;
    std::memcpy(&one, bytes.data(), sizeof one);
    sum += one;
  }
  return sum / group.size();
}

/// Sends every other rank so many messages of `elements` floats, all at once, and receives as many. Returns the seconds.
double seconds_of_messages(Group& group, int64_t messages, int64_t elements) {
  const at::Tensor out = at::zeros({messages, elements}), in = at::empty({group.size(), messages, elements});
  meet(group);
  const Stopwatch watch;
  Transfers transfers;
  transfers.reserve(static_cast<size_t>(messages * (group.size() - 1)));
  for (int64_t i = 0; i < messages; ++i)
    for (int step = 1; step < group.size(); ++step) {
      const int to = (group.rank() + step) % group.size(), from = (group.rank() + group.size() - step) % group.size();
      transfers.push_back(group.exchange({{out[i], to}}, {{in[from][i], from}}, static_cast<int>(i)));
    }
  wait_for(transfers);
  return watch.seconds();
}

double median_seconds_of_messages(Group& group, int64_t messages, int64_t elements) {
  std::vector<double> seconds;
  for (int round = 0; round <= kRounds; ++round) seconds.push_back(seconds_of_messages(group, messages, elements));
  seconds.erase(seconds.begin());
  return mean_over_ranks(group, median(seconds));
}

/// Returns the seconds of the small messages by which all ranks agree after their batches.
double seconds_of_agreement(Group& group) {
  constexpr int kTimes = 50;
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const Stopwatch watch;
    meet(group);
    seconds.push_back(watch.seconds());
  }
  return mean_over_ranks(group, median(seconds));
}

/// Seconds of an update: without other ranks, with them, and with an exchange that begins after the backward pass.
struct UpdateSeconds {
  double alone = 0, together = 0, without_overlap = 0;
  BatchTokens tokens = {};
  int64_t num_parameters = 0;
};

UpdateSeconds time_updates(const Options& options, const TimedUpdates& updates, Group& group) {
  std::unique_ptr<BenchBatches> batches;
  const auto open = [&] {
    if (!batches) batches = std::make_unique<BenchBatches>(options, updates.folder);
  };
  at_first(group, open);  // it makes vocabulary and cache
  on_all_ranks(group, open);
  BenchTrainer alone(options, batches->sizes()), together(options, batches->sizes(), group);
  UpdateSeconds result = {.num_parameters = together.num_parameters()};
  std::vector<double> seconds[3];
  for (int64_t i = -updates.warmup; i < updates.timed; ++i) {
    const std::vector<BatchPtr> of_update = batches->next();
    for (size_t kind = 0; kind < 3; ++kind) {
      together.set_exchange_overlap(kind == 1);
      meet(group);
      const Stopwatch watch;
      (kind == 0 ? alone : together).update(of_update);
      if (i >= 0) seconds[kind].push_back(watch.seconds());
    }
    if (i >= 0) result.tokens.add(of_update);
  }
  result.alone = mean_over_ranks(group, median(seconds[0]));
  result.together = mean_over_ranks(group, median(seconds[1]));
  result.without_overlap = mean_over_ranks(group, median(seconds[2]));
  return result;
}

/// Returns the estimated efficiency of more ranks on a network, with this many batches an update and four times as many.
Json estimate_of(const std::string& network, RankCosts costs, double bytes_per_second) {
  Json estimate = {{"network", network}};
  costs.bytes_per_second = bytes_per_second;
  const double once = costs.compute_seconds;
  for (const int times : {1, 4}) {
    costs.compute_seconds = times * once;
    Json of_ranks = Json::object();
    for (const int64_t ranks : kEstimatedRanks) of_ranks[std::to_string(ranks)] = estimated_efficiency(costs, ranks);
    estimate[times == 1 ? "efficiency" : "efficiency_of_4_times_the_batches"] = of_ranks;
  }
  return estimate;
}

}  // namespace

Json rank_speed(const Options& options, const TimedUpdates& updates, Group& group) {
  const UpdateSeconds update = time_updates(options, updates, group);
  const double others = group.size() - 1;
  const int64_t elements = least_bucket(group.size()) / group.size(),
                pieces = std::max<int64_t>(1, update.num_parameters / least_bucket(group.size()));
  const double bytes = static_cast<double>(pieces * elements) * sizeof(float) * others;
  RankCosts costs = {.compute_seconds = update.alone,
                     .parameters = static_cast<double>(update.num_parameters),
                     .gradient_bytes = options.train.exchange == ExchangeType::kBf16 ? 2.0 : 4.0};
  costs.bytes_per_second = bytes / median_seconds_of_messages(group, pieces, elements);
  costs.message_seconds = median_seconds_of_messages(group, kMessages, 1) / (static_cast<double>(kMessages) * others);
  const double agreement = seconds_of_agreement(group);
  Json report = {{"ranks", group.size()}, {"parameters", update.num_parameters}};
  report.update({{"tgt_tokens_per_update", static_cast<double>(update.tokens.tgt) / static_cast<double>(updates.timed)},
                 {"ms_alone", 1e3 * update.alone},
                 {"ms_update", 1e3 * update.together},
                 {"ms_update_without_overlap", 1e3 * update.without_overlap},
                 {"efficiency", update.alone / update.together},
                 {"overlap_gain", update.without_overlap / update.together},
                 {"megabytes_sent_per_update", bytes_sent(costs, group.size()) / kMega},
                 {"gigabits_per_second", costs.bytes_per_second * kBitsInByte / kGiga},
                 {"us_per_message", costs.message_seconds / kMicro},
                 {"us_agreement", agreement / kMicro},
                 {"peak_mebibytes", peak_mebibytes(at::Device(options.device))}});
  report.update(setting_of(options));
  report["updates"] = updates.timed;
  report["estimates"] = Json::array({estimate_of("this one", costs, costs.bytes_per_second)});
  for (const double gigabits : kEstimatedGigabits)
    report["estimates"].push_back(
        estimate_of(std::to_string(static_cast<int>(gigabits)) + " Gbit/s", costs, gigabits * kGiga / kBitsInByte));
  return report;
}

}  // namespace lacuna

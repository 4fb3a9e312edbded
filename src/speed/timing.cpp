#include "speed/timing.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>

#include "attention/attention.h"
#include "attention/registry.h"
#include "base/log.h"
#include "base/spelling.h"
#include "base/stopwatch.h"

namespace lacuna {

namespace {

/// The device with its index.
c10::Device placed(c10::Device device) {
  return device.is_cpu() || device.has_index() ? device : c10::Device(device.type(), 0);
}

/// Returns the seconds of `repeats` runs, one behind the other.
double seconds_of(const Timed& timed, int64_t repeats, c10::Device device) {
  Laps laps(device);
  for (int64_t repeat = 0; repeat < repeats; ++repeat) timed.run();
  laps.end();
  return laps.seconds().front();
}

}  // namespace

Laps::Laps(c10::Device device) : device_(placed(device)) {
  end();
}

void Laps::end() {
  if (device_.is_cpu()) {
    moments_.push_back(std::chrono::steady_clock::now());
    return;
  }
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_.back().record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

std::vector<double> Laps::seconds() const {
  std::vector<double> seconds;
  seconds.reserve(moments_.size() + events_.size());
  for (size_t i = 1; i < moments_.size(); ++i) seconds.push_back(std::chrono::duration<double>(moments_[i] - moments_[i - 1]).count());
  if (!events_.empty()) events_.back().synchronize();
  for (size_t i = 1; i < events_.size(); ++i) seconds.push_back(1e-3 * events_[i - 1].elapsedTime(events_[i]));
  return seconds;
}

void time_in_turn(std::vector<Timed>& all, int64_t rounds, c10::Device device) {
  constexpr double kLeastSeconds = 0.02, kMostRepeats = 200, kLong = 1;
  std::vector<int64_t> repeats;
  for (const Timed& timed : all) {
    if (seconds_of(timed, 1, device) > kLong) {
      repeats.push_back(1);
      continue;
    }
    const double one = seconds_of(timed, 1, device);
    repeats.push_back(static_cast<int64_t>(std::clamp(std::ceil(kLeastSeconds / std::max(one, 1e-9)), 1.0, kMostRepeats)));
  }
  for (int64_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i)
      all[i].seconds.push_back(seconds_of(all[i], repeats[i], device) / static_cast<double>(repeats[i]));
}

void wait_for(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(placed(device).index());
}

Options with_attention(const Options& options, const ConfigNode& attention) {
  Options changed = options;
  changed.model.attention = attention;
  resolve_attention(changed.model);  // for its errors
  return changed;
}

std::string attention_in_full(const Options& options) {
  const AttentionPlan plan = resolve_attention(options.model);
  std::vector<std::string> texts;
  for (const auto* site : {&plan.encoder_self, &plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site) {
      ConfigNode node = choice.type->description();
      node.set("norm", ConfigNode::scalar(choice.norm));
      const std::string text = node.to_line();
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  return join(texts, " and ");
}

void PairedSeconds::measure(const std::function<void()>& with_softmax, const std::function<void()>& with_other) {
  const Stopwatch first;
  with_softmax();
  softmax.push_back(first.seconds());
  const Stopwatch second;
  with_other();
  other.push_back(second.seconds());
}

nlohmann::ordered_json comparison(const NamedOptions& other, const PairedSeconds& seconds) {
  const PairedRatio ratio = paired_ratio(seconds.softmax, seconds.other);
  log_info("{}: {:.3f} of softmax's time", other.name, ratio.median);
  return {{"attention", other.name},
          {"in_full", attention_in_full(other.options)},
          {"ratio", ratio.median},
          {"ratio_low", ratio.interval.low},
          {"ratio_high", ratio.interval.high},
          {"softmax_ms", 1e3 * median(seconds.softmax)},
          {"ms", 1e3 * median(seconds.other)},
          {"pairs", seconds.softmax.size()}};
}

}  // namespace lacuna

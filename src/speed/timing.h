#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "config/options.h"

namespace lacuna {

/// A function that is timed beside others, with the seconds of each measurement.
struct Timed {
  std::function<void()> run;
  std::vector<double> seconds = {};
  double median_ms() const { return 1e3 * median(seconds); }
};

/// The seconds of pieces of work, one after the other. On a GPU they are taken by events in its queue, so that measuring waits for nothing.
class Laps {
 public:
  /// Begins the first lap.
  explicit Laps(c10::Device device);
  /// Ends a lap and begins the next.
  void end();
  /// Returns the seconds of each lap, when a GPU has finished them.
  std::vector<double> seconds() const;

 private:
  c10::Device device_;
  std::vector<std::chrono::steady_clock::time_point> moments_;  // on the CPU
  std::vector<c10::Event> events_;                              // on a GPU
};

/// Measures each function in turn, `rounds` times (A B A B ...), after a warm-up run. A short function is repeated within a measurement;
/// how often is decided by a second run, which is left out if the first took long. A measurement for a GPU is of its own time, from the
/// first repetition to the last: functions that wait for nothing are queued one behind the other.
void time_in_turn(std::vector<Timed>& all, int64_t rounds, c10::Device device = c10::kCPU);

/// Waits until a GPU has finished its work; returns at once on the CPU.
void wait_for(c10::Device device);

/// A configuration with the name of its attention.
struct NamedOptions {
  std::string name;
  Options options;
};

/// Returns `options` with this model.attention. Throws ConfigError if the model cannot have it.
Options with_attention(const Options& options, const ConfigNode& attention);

/// Returns options that make every translation exactly `length` tokens long, eos included: the same steps for all.
inline Options with_forced_length(Options options, int64_t length) {
  options.translate.min_length = options.translate.max_length = length;
  options.translate.n_best = 1;
  options.translate.sampling = Sampling::kNone;
  return options;
}

/// Lists the attention types, options and norms of all layers and sites, each once.
std::string attention_in_full(const Options& options);

/// Seconds of the same work with softmax and with another attention, measured in pairs.
struct PairedSeconds {
  std::vector<double> softmax, other;

  void measure(const std::function<void()>& with_softmax, const std::function<void()>& with_other);
};

/// Returns an entry of a report's "comparisons", with median ratio and 95 % interval; logs the ratio.
nlohmann::ordered_json comparison(const NamedOptions& other, const PairedSeconds& seconds);

}  // namespace lacuna

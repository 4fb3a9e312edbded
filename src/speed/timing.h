#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "speed/named_options.h"

namespace lacuna {

/// A function that is timed beside others, with the seconds of each measurement.
struct Timed {
  std::function<void()> run;
  std::vector<double> seconds = {};
  double median_ms() const;
};

/// Measures each function in turn, `rounds` times (A B A B ...), after a warm-up run. A short function is repeated within a measurement;
/// how often is decided by a second run, which is left out if the first took long.
void time_in_turn(std::vector<Timed>& all, int64_t rounds);

/// Waits until a GPU has finished its work; returns at once on the CPU.
void wait_for(c10::Device device);

/// Seconds of the same work with softmax and with another attention, measured in pairs.
struct PairedSeconds {
  std::vector<double> softmax, other;

  void measure(const std::function<void()>& with_softmax, const std::function<void()>& with_other);
};

/// Returns an entry of a report's "comparisons": name, type with every option, median of the paired ratios, its 95 % interval, medians.
/// Logs the ratio.
nlohmann::ordered_json comparison(const NamedOptions& other, const PairedSeconds& seconds);

}  // namespace lacuna

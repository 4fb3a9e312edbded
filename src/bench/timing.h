#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace lacuna {

/// Something that is timed beside others: seconds of each measurement.
struct Timed {
  std::function<void()> run;
  std::vector<double> seconds = {};
  double median_ms() const;
};

/// Measures each in turn, `rounds` times (A B A B ...), after a first run that does not count. What takes less than a clock can tell well
/// is run several times a measurement: how often, a second run says, unless the first took long.
void time_in_turn(std::vector<Timed>& all, int64_t rounds);

/// Returns once a GPU has done all that it was given; on the CPU at once.
void wait_for(c10::Device device);

}  // namespace lacuna

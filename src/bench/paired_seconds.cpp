#include "bench/paired_seconds.h"

#include "base/log.h"
#include "base/statistics.h"
#include "base/stopwatch.h"

namespace lacuna {

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

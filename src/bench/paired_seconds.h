#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/named_options.h"

/// Attention types against softmax in one process, in pairs.
namespace lacuna {

/// One pair after another of the same work, first softmax then another attention.
struct PairedSeconds {
  std::vector<double> softmax, other;

  void measure(const std::function<void()>& with_softmax, const std::function<void()>& with_other);
};

/// An entry of a report's "comparisons": name, type in full with every option, median of the paired ratios, its 95 % interval, medians.
/// The log is told of the ratio.
nlohmann::ordered_json comparison(const NamedOptions& other, const PairedSeconds& seconds);

}  // namespace lacuna

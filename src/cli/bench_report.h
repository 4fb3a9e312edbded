#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna {

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// The middle one (the upper of two). At least one value.
double median(std::vector<double> values);

/// The most memory this process has had, in MiB.
double peak_mebibytes();

/// What was measured, on stdout: one JSON object, or a line for each of its entries.
void print_report(const nlohmann::ordered_json& report, bool as_json);

/// `lacuna bench train ...` and `lacuna bench translate ...`.
int bench_train(const std::vector<std::string>& arguments);
int bench_translate(const std::vector<std::string>& arguments);

}  // namespace lacuna

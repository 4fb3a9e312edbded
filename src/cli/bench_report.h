#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
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

/// Something that is timed beside others: seconds of each measurement.
struct Timed {
  std::function<void()> run;
  std::vector<double> seconds = {};
  double median_ms() const;
};

/// Measures each in turn, `rounds` times (A B A B ...), after a first run that does not count. What takes less than a clock can tell well
/// is run several times a measurement: how often, a second run says, unless the first took long.
void time_in_turn(std::vector<Timed>& all, int64_t rounds);

/// True where a clock beside an operation says what it costs. A GPU works later.
inline bool is_cpu(const std::string& device) {
  return device == "cpu";
}

/// Returns once a GPU has done all that it was given; on the CPU at once.
void wait_for(at::Device device);

/// The most memory this process has had, in MiB; of a GPU's, what its tensors took.
double peak_mebibytes(at::Device device = at::kCPU);

/// A number in a table: four digits that count.
std::string short_number(double value);
/// Cells in columns, the first row being their heads.
void print_table(const std::vector<std::vector<std::string>>& rows);
/// A line for each entry of an object but for lists and objects, which are printed by whoever has a table of them.
void print_facts(const nlohmann::ordered_json& report);
/// What was measured, on stdout: one JSON object, or a line for each of its entries.
void print_report(const nlohmann::ordered_json& report, bool as_json);

/// `lacuna bench train ...` and so on.
int bench_train(const std::vector<std::string>& arguments);
int bench_translate(const std::vector<std::string>& arguments);
int bench_attention(const std::vector<std::string>& arguments);
int bench_kernels(const std::vector<std::string>& arguments);
int bench_lengths(const std::vector<std::string>& arguments);

}  // namespace lacuna

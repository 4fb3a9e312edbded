#include "cli/bench_report.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/json_text.h"
#include "base/statistics.h"

namespace lacuna {

double Timed::median_ms() const {
  return 1e3 * median(seconds);
}

void time_in_turn(std::vector<Timed>& all, int64_t rounds) {
  constexpr double kLeastSeconds = 0.02, kMostRepeats = 200, kLong = 1;
  std::vector<int64_t> repeats;
  for (const Timed& timed : all) {
    const Stopwatch first;
    timed.run();
    if (first.seconds() > kLong) {
      repeats.push_back(1);
      continue;
    }
    const Stopwatch one;
    timed.run();
    repeats.push_back(static_cast<int64_t>(std::clamp(std::ceil(kLeastSeconds / std::max(one.seconds(), 1e-9)), 1.0, kMostRepeats)));
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < all.size(); ++i) {
      const Stopwatch some;
      for (int64_t repeat = 0; repeat < repeats[i]; ++repeat) all[i].run();
      all[i].seconds.push_back(some.seconds() / static_cast<double>(repeats[i]));
    }
  }
}

namespace {

constexpr double kMebibyte = 1 << 20;

at::DeviceIndex index_of(at::Device device) {
  return device.has_index() ? device.index() : at::DeviceIndex{0};
}

}  // namespace

void wait_for(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(index_of(device));
}

double peak_mebibytes(at::Device device) {
  if (!device.is_cpu()) {
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return static_cast<double>(c10::getDeviceAllocator(device.type())->getDeviceStats(index_of(device)).allocated_bytes[all].peak) /
           kMebibyte;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string short_number(double value) {
  return fmt::format("{:.4g}", value);
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << "\n";
  }
}

void print_facts(const nlohmann::ordered_json& report) {
  for (const auto& [key, value] : report.items()) {
    if (value.is_structured()) continue;
    const std::string text = value.is_number_float() ? short_number(value.get<double>())
                             : value.is_string()     ? value.get<std::string>()
                                                     : value.dump();
    std::cout << fmt::format("{:<28} {}\n", key, text);
  }
}

void print_report(const nlohmann::ordered_json& report, bool as_json) {
  if (as_json) {
    std::cout << json_text(report, 2) << "\n";
  } else {
    print_facts(report);
  }
}

}  // namespace lacuna

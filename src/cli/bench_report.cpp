#include "cli/bench_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iostream>

#include "base/json_text.h"

namespace lacuna {

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

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "cli/bench_report.h"
#include "cli/verb.h"

namespace lacuna {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double peak_mebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void print_report(const nlohmann::ordered_json& report, bool as_json) {
  if (as_json) {
    std::cout << report.dump(2) << "\n";
    return;
  }
  for (const auto& [key, value] : report.items())
    std::cout << fmt::format("{:<28} {}\n", key, value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump());
}

namespace {

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (what == "train") return bench_train(rest);
  if (what == "translate") return bench_translate(rest);
  throw UsageError("\"" + what + "\" is not something to measure; expected train or translate");
}

}  // namespace

Verb bench_verb() {
  return {"bench", "tokens per second of training and translating, and where the time goes", run};
}

}  // namespace lacuna

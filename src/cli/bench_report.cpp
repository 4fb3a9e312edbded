#include "cli/bench_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iostream>

#include "attention/registry.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kCompareFlag[] = "--compare", kControl[] = "softmax (control)";

/// Prints a line for each scalar entry of an object.
void print_facts(const Json& report) {
  for (const auto& [key, value] : report.items()) {
    if (value.is_structured()) continue;
    const std::string text = value.is_number_float() ? short_number(value.get<double>())
                             : value.is_string()     ? value.get<std::string>()
                                                     : value.dump();
    std::cout << fmt::format("{:<28} {}\n", key, text);
  }
}

}  // namespace

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

void print_report(const Json& report, bool as_json) {
  if (as_json) {
    std::cout << json_text(report, 2) << "\n";
  } else {
    print_facts(report);
  }
}

void print_gpu_profile(const Json& profile, const std::string& unit) {
  const auto number = [&](const char* key) { return profile.at(key).get<double>(); };
  const double busy = number("gpu_busy_ms");
  std::cout << fmt::format("{:<28} {:.4g} ms per {}, {:.1f} % of its time; {:.4g} launches, {:.4g} synchronizations, {:.4g} allocations\n",
                           "GPU busy", busy, unit, 100 * number("gpu_busy_share"), number("launches"), number("synchronizations"),
                           number("allocations"));
  for (const char* list : {"parts", "kernels"}) {
    std::vector<std::vector<std::string>> rows = {{"ms", "calls", "share", list}};
    for (const Json& line : profile.at(list)) {
      const double ms = line.at("ms").get<double>();
      rows.push_back({fmt::format("{:.3f}", ms), short_number(line.at("calls").get<double>()),
                      busy > 0 ? fmt::format("{:.1f} %", 100 * ms / busy) : "", line.at("name").get<std::string>()});
    }
    print_table(rows);
  }
}

std::vector<NamedOptions> compared_options(const std::string& compare, const std::vector<Variant>& defined, const Options& options) {
  std::vector<Variant> variants = parse_variants("softmax", kCompareFlag, {}, types::known_types());
  variants.front().name = kControl;
  for (Variant& variant : parse_variants(compare, kCompareFlag, defined, types::known_types())) variants.push_back(std::move(variant));
  std::vector<NamedOptions> compared;
  compared.reserve(variants.size());
  for (const Variant& variant : variants) compared.push_back({variant.name, with_attention(options, attention_of(variant, kCompareFlag))});
  return compared;
}

void print_comparisons(const Json& report, bool as_json) {
  print_report(report, as_json);
  if (as_json) return;
  std::vector<std::vector<std::string>> rows = {{"attention", "time / softmax's", "95 % interval", "ms", "softmax ms", "in full"}};
  for (const Json& line : report.at("comparisons")) {
    const auto number = [&](const char* key) { return line.at(key).get<double>(); };
    rows.push_back({line.at("attention").get<std::string>(), fmt::format("{:.3f}", number("ratio")),
                    fmt::format("{:.3f} to {:.3f}", number("ratio_low"), number("ratio_high")), short_number(number("ms")),
                    short_number(number("softmax_ms")), line.at("in_full").get<std::string>()});
  }
  print_table(rows);
}

}  // namespace lacuna

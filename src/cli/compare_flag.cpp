#include "cli/compare_flag.h"

#include <spdlog/fmt/fmt.h>

#include "attention/registry.h"
#include "cli/bench_report.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kCompareFlag[] = "--compare", kControl[] = "softmax (control)";

}  // namespace

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

#include "cli/paired_bench.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "attention/attention.h"
#include "attention/registry.h"
#include "base/spelling.h"
#include "base/statistics.h"
#include "cli/bench_report.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kCompareFlag[] = "--compare", kControl[] = "softmax (control)";

}  // namespace

Options with_attention(const Options& options, const ConfigNode& attention) {
  Options changed = options;
  changed.model.attention = attention;
  require_attention(changed.model);
  return changed;
}

Options with_attention(const Options& options, const Variant& variant) {
  return with_attention(options, attention_of(variant, kCompareFlag));
}

std::string attention_in_full(const Options& options) {
  const ModelOptions& model = options.model;
  const AttentionPlan plan = resolve_attention(model);
  std::vector<std::string> texts;
  for (const auto* site : {&plan.encoder_self, &plan.decoder_self, &plan.cross})
    for (const AttentionChoice& choice : *site) {
      ConfigNode node = choice.type->description();
      node.set("norm", ConfigNode::scalar(choice.norm));
      const std::string text = node.to_line();
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  return join(texts, " and ");
}

std::vector<Variant> variants_with_control(const std::string& compare, const std::vector<Variant>& defined, const Options& options) {
  std::vector<Variant> variants = parse_variants("softmax", kCompareFlag, {}, types::known_types());
  variants.front().name = kControl;
  for (Variant& variant : parse_variants(compare, kCompareFlag, defined, types::known_types())) variants.push_back(std::move(variant));
  for (const Variant& variant : variants) with_attention(options, variant);  // for its errors
  return variants;
}

void PairedSeconds::measure(const std::function<void()>& with_softmax, const std::function<void()>& with_variant) {
  const Stopwatch first;
  with_softmax();
  softmax.push_back(first.seconds());
  const Stopwatch second;
  with_variant();
  variant.push_back(second.seconds());
}

Json comparison(const Variant& variant, const Options& options, const PairedSeconds& seconds) {
  const PairedRatio ratio = paired_ratio(seconds.softmax, seconds.variant);
  return {{"attention", variant.name},           {"in_full", attention_in_full(options)}, {"ratio", ratio.median},
          {"ratio_low", ratio.interval.low},     {"ratio_high", ratio.interval.high},     {"softmax_ms", 1e3 * median(seconds.softmax)},
          {"ms", 1e3 * median(seconds.variant)}, {"pairs", seconds.softmax.size()}};
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

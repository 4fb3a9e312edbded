#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "ablation/svg.h"
#include "ablation/tables.h"

namespace lacuna {
namespace {

using svg::circle, svg::diamond, svg::line, svg::square, svg::text_at;

constexpr double kRowHeight = 26, kTop = 64, kBottom = 56, kPanelGap = 40, kBleuWidth = 420, kSparsityWidth = 240, kMargin = 16;

constexpr svg::Style kStyle = {.light = R"(  .bleu { stroke: #0072b2; fill: #0072b2; }
  .seed { stroke: #0072b2; fill: none; }
  .encoder_self { stroke: #0072b2; fill: #0072b2; }
  .decoder_self { stroke: #c05000; fill: #c05000; }
  .cross { stroke: #007a5a; fill: none; stroke-width: 2; }
)",
                               .dark = R"(    .bleu, .encoder_self { stroke: #6cb8f0; fill: #6cb8f0; }
    .seed { stroke: #6cb8f0; }
    .decoder_self { stroke: #f0a050; fill: #f0a050; }
    .cross { stroke: #50d0a8; }
)"};

/// A linear axis: values from `low` to `high` on pixels from `left` on.
struct Axis {
  double low = 0, high = 1, step = 1, left = 0, width = 1;

  double at(double value) const { return left + (value - low) / (high - low) * width; }
};

/// An axis with round ends and steps that holds all values.
Axis round_axis(double low, double high, double left, double width) {
  const double rough = std::max(high - low, 0.5) / 5, magnitude = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * magnitude;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * magnitude >= rough) step = factor * magnitude;
  Axis axis{.low = std::floor(low / step) * step, .high = std::ceil(high / step) * step, .step = step, .left = left, .width = width};
  if (axis.high <= axis.low) axis.high = axis.low + step;
  return axis;
}

Axis bleu_axis(const AblationReport& report, double left) {
  double low = 1e9, high = -1e9;
  const auto include = [&](double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const VariantSummary& variant : report.variants) {
    for (const double bleu : variant.bleu_values) include(bleu);
    if (!variant.bleu || !variant.bleu_interval) continue;
    include(variant.bleu->mean - *variant.bleu_interval);
    include(variant.bleu->mean + *variant.bleu_interval);
  }
  return low > high ? Axis{.low = 0, .high = 100, .step = 20, .left = left, .width = kBleuWidth}
                    : round_axis(std::max(low, 0.0), high, left, kBleuWidth);
}

std::string draw_axis(const Axis& axis, double bottom, const std::string& label) {
  std::string drawn;
  const int64_t ticks = std::llround((axis.high - axis.low) / axis.step);
  const int decimals = axis.step < 1 ? 1 : 0;
  for (int64_t i = 0; i <= ticks; ++i) {
    const double value = axis.low + static_cast<double>(i) * axis.step, x = axis.at(value);
    drawn += line("grid", x, kTop, x, bottom) + text_at(x, bottom + 18, fmt::format("{:.{}f}", value, decimals), "middle");
  }
  return drawn + line("axis", axis.left, bottom, axis.left + axis.width, bottom) +
         text_at(axis.left + axis.width / 2, bottom + 38, label, "middle");
}

std::string draw_bleu(const VariantSummary& variant, const Axis& axis, double y) {
  if (!variant.bleu) return text_at(axis.left + 6, y + 4, "failed");
  std::string drawn, says = fmt::format("{}: {:.2f} BLEU", variant.name, variant.bleu->mean);
  if (variant.bleu_interval) {
    const double low = axis.at(std::max(variant.bleu->mean - *variant.bleu_interval, axis.low));
    const double high = axis.at(variant.bleu->mean + *variant.bleu_interval);
    drawn += line("bleu", low, y, high, y) + line("bleu", low, y - 4, low, y + 4) + line("bleu", high, y - 4, high, y + 4);
    says += fmt::format(" ± {:.2f}", *variant.bleu_interval);
  }
  if (variant.bleu_values.size() > 1)
    for (const double bleu : variant.bleu_values) drawn += circle("seed", axis.at(bleu), y, 3, fmt::format("{:.2f}", bleu));
  return drawn + circle("bleu", axis.at(variant.bleu->mean), y, 4.5, says);
}

std::string draw_sparsity(const VariantSummary& variant, const Axis& axis, double y) {
  std::string marks;
  const auto draw = [&](const char* site, const char* name, const auto& mark) {
    const auto found = variant.sparsity.find(site);
    if (found == variant.sparsity.end()) return;
    const double percent = 100 * found->second;
    marks += mark(site, axis.at(percent), y, fmt::format("{}, {}: {:.1f} %", variant.name, name, percent));
  };
  draw("encoder_self", "encoder", svg::disc);
  draw("decoder_self", "decoder", square);
  draw("cross", "cross", diamond);
  return marks;
}

std::string legend(const Axis& bleu, const Axis& sparsity) {
  const double y = kTop - 14;
  std::string drawn = circle("bleu", bleu.left + 6, y, 4.5, "mean") + text_at(bleu.left + 16, y + 4, "mean, 95 % bootstrap interval") +
                      circle("seed", bleu.left + 216, y, 3, "a seed") + text_at(bleu.left + 226, y + 4, "each seed");
  drawn += svg::disc("encoder_self", sparsity.left + 6, y, "encoder") + text_at(sparsity.left + 16, y + 4, "encoder");
  drawn += square("decoder_self", sparsity.left + 86, y, "decoder") + text_at(sparsity.left + 96, y + 4, "decoder");
  return drawn + diamond("cross", sparsity.left + 166, y, "cross") + text_at(sparsity.left + 176, y + 4, "cross");
}

double label_width(const AblationReport& report) {
  size_t letters = 8;
  for (const VariantSummary& variant : report.variants) letters = std::max(letters, display_name(variant.name).size());
  return svg::kLetterWidth * static_cast<double>(letters);
}

}  // namespace

std::string svg_plot(const AblationReport& report) {
  const double left = kMargin + label_width(report) + 8;
  const double bottom = kTop + kRowHeight * static_cast<double>(report.variants.size());
  const Axis bleu = bleu_axis(report, left);
  const Axis sparsity{.low = 0, .high = 100, .step = 25, .left = left + kBleuWidth + kPanelGap, .width = kSparsityWidth};
  const double width = sparsity.left + kSparsityWidth + 2 * kMargin, height = bottom + kBottom;
  std::string body = text_at(kMargin, 24, "BLEU and share of zero attention weights", "start", "title") + legend(bleu, sparsity);
  body += draw_axis(bleu, bottom, report.test_set.empty() ? "BLEU" : "BLEU on " + report.test_set) +
          draw_axis(sparsity, bottom, "zero weights, %");
  for (size_t i = 0; i < report.variants.size(); ++i) {
    const double y = kTop + kRowHeight * (static_cast<double>(i) + 0.5);
    const VariantSummary& variant = report.variants[i];
    body += text_at(left - 8, y + 4, display_name(variant.name), "end") + draw_bleu(variant, bleu, y) + draw_sparsity(variant, sparsity, y);
  }
  return svg::picture(width, height, "BLEU and sparsity of attention variants", kStyle, body);
}

}  // namespace lacuna

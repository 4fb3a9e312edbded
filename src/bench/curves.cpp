#include "bench/curves.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ablation/svg.h"

namespace lacuna {
namespace {

constexpr double kCurvesMargin = 16, kCurvesTop = 84, kCurvesBottom = 56, kPlotWidth = 290, kPlotHeight = 300, kTickRoom = 44,
                 kCurvesGap = 20;
constexpr double kLabelAt = 20, kLabelGap = 16;  // from the end of a curve to the mark of its name; between two names

constexpr svg::Style kCurvesStyle = {.light = R"(  .panel { font-weight: bold; }
  .mark { stroke: currentColor; fill: currentColor; stroke-width: 1.5; }
  .curve { stroke: currentColor; fill: none; stroke-width: 2; stroke-linejoin: round; }
  .to_name { stroke: currentColor; fill: none; stroke-dasharray: 2 2; }
  .c0 { color: #0072b2; }
  .c1 { color: #c05000; }
  .c2 { color: #007a5a; }
  .c3 { color: #a03080; }
  .c4 { color: #806000; }
  .c5 { color: #505050; }
)",
                                     .dark = R"(    .c0 { color: #6cb8f0; }
    .c1 { color: #f0a050; }
    .c2 { color: #50d0a8; }
    .c3 { color: #f090d0; }
    .c4 { color: #d8c860; }
    .c5 { color: #c0c0c0; }
)"};
constexpr size_t kColors = 6;
constexpr std::array<svg::Mark*, 7> kMarks = {svg::disc,          svg::square, svg::triangle, svg::diamond,
                                              svg::triangle_down, svg::plus,   svg::saltire};

/// The class of curve i's color. The numbers of colors and marks are coprime, so 42 curves look different.
std::string color(size_t i) {
  return fmt::format("c{}", i % kColors);
}

std::string mark(size_t i, double x, double y, const std::string& says) {
  return kMarks[i % kMarks.size()]("mark " + color(i), x, y, says);
}

/// A number with three digits that count.
std::string short_text(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

/// Values from `low` to `high`, as their logarithms, on pixels from `begin` to `end`.
struct LogAxis {
  double low = 1, high = 2, begin = 0, end = 1;

  double at(double value) const { return begin + std::log(value / low) / std::log(high / low) * (end - begin); }
};

/// A panel's place in the picture.
struct Frame {
  LogAxis x, y = {};
  std::vector<double> ticks;  ///< of y
};

LogAxis length_axis(const std::vector<int64_t>& lengths, double left) {
  const auto first = static_cast<double>(lengths.front()), last = static_cast<double>(lengths.back());
  const double widened = first < last ? 1 : 2;  // a single length stands in the middle
  return {.low = first / widened, .high = last * widened, .begin = left, .end = left + kPlotWidth};
}

Frame frame_of(const CurvePicture& picture, const CurvePanel& panel, double left) {
  double low = 1e300, high = 0;
  for (const Curve& curve : panel.curves)
    for (const double value : curve.values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  Frame frame{.x = length_axis(picture.lengths, left), .ticks = low <= high ? round_ticks(low, high) : round_ticks(1, 10)};
  frame.y = {.low = frame.ticks.front(), .high = frame.ticks.back(), .begin = kCurvesTop + kPlotHeight, .end = kCurvesTop};
  return frame;
}

std::string draw_axes(const CurvePicture& picture, const CurvePanel& panel, const Frame& frame) {
  const double left = frame.x.begin, right = frame.x.end, bottom = frame.y.begin;
  std::string drawn = svg::text_at(left, kCurvesTop - 14, panel.title, "start", "panel");
  for (const double tick : frame.ticks) {
    const double y = frame.y.at(tick);
    drawn += svg::line("grid", left, y, right, y) + svg::text_at(left - 8, y + 4, fmt::format("{:g}", tick), "end");
  }
  for (const int64_t length : picture.lengths) {
    const double x = frame.x.at(static_cast<double>(length));
    drawn += svg::line("axis", x, bottom, x, bottom + 5) + svg::text_at(x, bottom + 18, std::to_string(length), "middle");
  }
  return drawn + svg::line("axis", left, bottom, right, bottom) + svg::text_at((left + right) / 2, bottom + 40, picture.x_label, "middle");
}

std::string draw_curve(const CurvePicture& picture, const Curve& curve, size_t i, const Frame& frame) {
  std::string points, marks;
  for (size_t at = 0; at < curve.values.size(); ++at) {
    const int64_t length = picture.lengths[at];
    const double x = frame.x.at(static_cast<double>(length)), y = frame.y.at(curve.values[at]);
    points += fmt::format("{}{:.1f},{:.1f}", at == 0 ? "" : " ", x, y);
    marks += mark(i, x, y, fmt::format("{}, {}: {}", curve.name, length, short_text(curve.values[at])));
  }
  return fmt::format("<polyline class=\"curve {}\" points=\"{}\"/>\n", color(i), points) + marks;
}

/// The names at the ends of the curves, from top to bottom as these end.
std::string draw_names(const CurvePanel& panel, const Frame& frame) {
  std::vector<size_t> order(panel.curves.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end_of = [&](size_t i) { return frame.y.at(panel.curves[i].values.back()); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return end_of(a) < end_of(b); });
  std::vector<double> ends;
  ends.reserve(order.size());
  for (const size_t i : order) ends.push_back(end_of(i));
  const double bottom = std::max(frame.y.begin, frame.y.end + kLabelGap * static_cast<double>(order.size()));
  const std::vector<double> places = spread_apart(ends, kLabelGap, frame.y.end, bottom);
  std::string drawn;
  const double right = frame.x.end, x = right + kLabelAt;
  for (size_t i = 0; i < order.size(); ++i) {
    const Curve& curve = panel.curves[order[i]];
    drawn += svg::line("to_name " + color(order[i]), right + 6, ends[i], x - 6, places[i]);
    drawn += mark(order[i], x, places[i], curve.name) + svg::text_at(x + 10, places[i] + 4, curve.name);
  }
  return drawn;
}

double name_width(const CurvePicture& picture) {
  size_t letters = 0;
  for (const CurvePanel& panel : picture.panels)
    for (const Curve& curve : panel.curves) letters = std::max(letters, curve.name.size());
  return kLabelAt + 10 + svg::kLetterWidth * static_cast<double>(letters);
}

size_t most_curves(const CurvePicture& picture) {
  size_t most = 0;
  for (const CurvePanel& panel : picture.panels) most = std::max(most, panel.curves.size());
  return most;
}

}  // namespace

std::string svg_curves(const CurvePicture& picture) {
  std::string body = svg::text_at(kCurvesMargin, 24, picture.title, "start", "title") + svg::text_at(kCurvesMargin, 44, picture.subtitle);
  double left = kCurvesMargin;
  for (const CurvePanel& panel : picture.panels) {
    const Frame frame = frame_of(picture, panel, left + kTickRoom);
    body += draw_axes(picture, panel, frame);
    for (size_t i = 0; i < panel.curves.size(); ++i) body += draw_curve(picture, panel.curves[i], i, frame);
    body += draw_names(panel, frame);
    left = frame.x.end + name_width(picture) + kCurvesGap;
  }
  const double height = kCurvesTop + std::max(kPlotHeight, kLabelGap * static_cast<double>(most_curves(picture))) + kCurvesBottom;
  return svg::picture(left - kCurvesGap + kCurvesMargin, height, picture.title, kCurvesStyle, body);
}

std::vector<double> round_ticks(double low, double high) {
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(low)) - 1); ticks.size() < 2 || ticks.back() < high; power *= 10)
    for (const double tick : {power, 2 * power, 5 * power}) {
      if (tick <= low) ticks.clear();
      if (ticks.size() < 2 || ticks.back() < high) ticks.push_back(tick);
    }
  return ticks;
}

// Places less their rank times the gap need only not decrease: isotonic regression, by pooling neighbors that are in the wrong order.
std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, double low, double high) {
  struct Pool {
    double sum = 0;
    size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Pool pool{wanted[i] - gap * static_cast<double>(i), 1};
    for (; !pools.empty() && pools.back().mean() > pool.mean(); pools.pop_back()) {
      pool.sum += pools.back().sum;
      pool.count += pools.back().count;
    }
    pools.push_back(pool);
  }
  std::vector<double> places;
  for (const Pool& pool : pools)
    for (size_t i = 0; i < pool.count; ++i) {
      const double rank_gap = gap * static_cast<double>(places.size()), last_gap = gap * static_cast<double>(wanted.size() - 1);
      places.push_back(std::clamp(pool.mean(), low, high - last_gap) + rank_gap);
    }
  return places;
}

}  // namespace lacuna

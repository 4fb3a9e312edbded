#include "ablation/svg.h"

#include <spdlog/fmt/fmt.h>

namespace lacuna::svg {
namespace {

constexpr const char* kLight = R"(  text { font: 12px sans-serif; fill: #222; }
  .title { font-weight: bold; font-size: 14px; }
  .axis { stroke: #666; fill: none; }
  .grid { stroke: #ddd; fill: none; }
  .paper { fill: #fff; }
)";
constexpr const char* kDark = R"(    text { fill: #e6e6e6; }
    .axis { stroke: #aaa; }
    .grid { stroke: #444; }
    .paper { fill: #1a1a1a; }
)";

/// Draws a path that starts at (x, y); `strokes` is in SVG's path syntax.
std::string path(const std::string& kind, double x, double y, const char* strokes, const std::string& says) {
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}{}\"><title>{}</title></path>\n", kind, x, y, strokes, escaped(says));
}

}  // namespace

std::string picture(double width, double height, const std::string& name, const Style& style, const std::string& body) {
  const std::string head = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
      "<title>{2}</title>\n",
      width, height, escaped(name));
  return head + "<style>\n" + kLight + style.light + "  @media (prefers-color-scheme: dark) {\n" + kDark + style.dark + "  }\n</style>\n" +
         fmt::format("<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height) + body + "</svg>\n";
}

std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : text) xml += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return xml;
}

std::string text_at(double x, double y, const std::string& text, const std::string& anchor, const std::string& kind) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", kind, x, y, anchor, escaped(text));
}

std::string line(const std::string& kind, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1, y1, x2, y2);
}

std::string circle(const std::string& kind, double x, double y, double radius, const std::string& says) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}</title></circle>\n", kind, x, y, radius,
                     escaped(says));
}

std::string disc(const std::string& kind, double x, double y, const std::string& says) {
  return circle(kind, x, y, 4, says);
}

std::string square(const std::string& kind, double x, double y, const std::string& says) {
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\"><title>{}</title></rect>\n", kind, x - 4, y - 4,
                     escaped(says));
}

std::string diamond(const std::string& kind, double x, double y, const std::string& says) {
  return path(kind, x, y - 5, "l5 5l-5 5l-5 -5z", says);
}

std::string triangle(const std::string& kind, double x, double y, const std::string& says) {
  return path(kind, x, y - 5, "l5 9h-10z", says);
}

std::string triangle_down(const std::string& kind, double x, double y, const std::string& says) {
  return path(kind, x, y + 5, "l-5 -9h10z", says);
}

std::string plus(const std::string& kind, double x, double y, const std::string& says) {
  return path(kind, x - 5, y, "h10m-5 -5v10", says);
}

std::string saltire(const std::string& kind, double x, double y, const std::string& says) {
  return path(kind, x - 4, y - 4, "l8 8m0 -8l-8 8", says);
}

}  // namespace lacuna::svg

#pragma once

#include <string>

/// Elements of a self-contained SVG picture, legible on light and dark.
namespace lacuna::svg {

/// A generous estimate for 12 px sans-serif.
inline constexpr double kLetterWidth = 7.2;

/// CSS rules for the classes that a picture has beside text, title, axis, grid and paper.
struct Style {
  const char* light;
  const char* dark;  ///< rules that differ where dark is preferred
};

/// Returns an SVG file with the elements of `body` and the title `name`.
std::string picture(double width, double height, const std::string& name, const Style& style, const std::string& body);

std::string escaped(const std::string& text);
std::string text_at(double x, double y, const std::string& text, const std::string& anchor = "start", const std::string& kind = "label");
std::string line(const std::string& kind, double x1, double y1, double x2, double y2);

/// Draws a mark of class `kind` around a point; `says` is its tooltip.
using Mark = std::string(const std::string& kind, double x, double y, const std::string& says);
Mark disc, square, diamond, triangle, triangle_down, plus, saltire;
/// Draws a circle of any size.
std::string circle(const std::string& kind, double x, double y, double radius, const std::string& says);

}  // namespace lacuna::svg

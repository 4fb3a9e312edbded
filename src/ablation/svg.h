#pragma once

#include <string>

/// Pieces of a picture that needs nothing else: an SVG, legible on light and dark.
namespace lacuna::svg {

/// Of 12 px sans-serif, generously.
inline constexpr double kLetterWidth = 7.2;

/// Rules of CSS for the kinds of marks that a picture has beside text, title, axis, grid and paper.
struct Style {
  const char* light;
  const char* dark;  ///< what differs where dark is preferred
};

/// The picture of `body`, which calls itself `name`.
std::string picture(double width, double height, const std::string& name, const Style& style, const std::string& body);

std::string escaped(const std::string& text);
std::string text_at(double x, double y, const std::string& text, const std::string& anchor = "start", const std::string& kind = "label");
std::string line(const std::string& kind, double x1, double y1, double x2, double y2);

/// A mark of this kind around a place, with what it says when pointed at.
using Mark = std::string(const std::string& kind, double x, double y, const std::string& says);
Mark disc, square, diamond, triangle, triangle_down, plus, saltire;
/// A circle of any size.
std::string circle(const std::string& kind, double x, double y, double radius, const std::string& says);

}  // namespace lacuna::svg

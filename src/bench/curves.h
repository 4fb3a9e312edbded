#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// The costs of one system at each length of the picture, all greater than 0.
struct Curve {
  std::string name;
  std::vector<double> values = {};
};

/// Curves that share axes.
struct CurvePanel {
  std::string title;  ///< includes the unit
  std::vector<Curve> curves = {};
};

/// Panels side by side over the same lengths, of which there is at least one; they are positive and increase.
struct CurvePicture {
  std::string title = {}, subtitle = {};
  std::string x_label = {};
  std::vector<int64_t> lengths;
  std::vector<CurvePanel> panels;
};

/// Returns a self-contained SVG. Both axes are logarithmic. A curve's name is at its end; marks differ in shape as well as color and show
/// their numbers on hovering.
std::string svg_curves(const CurvePicture& picture);

/// Returns the ticks 1, 2, 5, 10, 20, ... from the last one at or below `low` to the first one above `high`. REQUIRES: 0 < low <= high.
std::vector<double> round_ticks(double low, double high);

/// Returns places nearest to `wanted` (least squares) in the same order, at least `gap` apart and from `low` to `high`. REQUIRES: there is
/// room for all.
std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, double low, double high);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// What one system costs at each length, in the picture's order of lengths. More than 0.
struct Curve {
  std::string name;
  std::vector<double> values = {};
};

/// Curves that share axes.
struct CurvePanel {
  std::string title;  ///< with the unit
  std::vector<Curve> curves = {};
};

/// Panels side by side over the same lengths. Of those: at least one, each larger than the one before, more than 0.
struct CurvePicture {
  std::string title = {}, subtitle = {};
  std::string x_label = {};
  std::vector<int64_t> lengths;
  std::vector<CurvePanel> panels;
};

/// An SVG that needs nothing else. Both axes are logarithmic, so that equal ratios are equal distances. A curve's name stands at its end;
/// marks of different shapes say what colours say, and numbers when pointed at.
std::string svg_curves(const CurvePicture& picture);

/// 1, 2, 5, 10, 20, ...: those from `low` to `high` with the one below (or equal) and the one above. 0 < low <= high.
std::vector<double> round_ticks(double low, double high);

/// Places as near to `wanted` as can be (least squares) in the same order, `gap` apart or more and from `low` to `high`; room for all of
/// them is needed.
std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, double low, double high);

}  // namespace lacuna

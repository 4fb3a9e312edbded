#pragma once

#include <string>

namespace lacuna {

/// A parameter all of whose elements stay in a range: where an update leads out of it, it ends at the border.
struct ParameterRange {
  std::string name;
  double lowest, highest;
};

}  // namespace lacuna

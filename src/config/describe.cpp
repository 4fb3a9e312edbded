#include "config/describe.h"

#include <sstream>

namespace lacuna {
namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

NumberCheck check(std::string expected, std::string brief, std::function<bool(const double&)> holds) {
  NumberCheck made;
  made.expected = std::move(expected);
  made.brief = std::move(brief);
  made.holds = std::move(holds);
  return made;
}

}  // namespace

NumberCheck at_least(double lowest) {
  return check("at least " + number_text(lowest), ">= " + number_text(lowest), [=](const double& x) { return x >= lowest; });
}
NumberCheck more_than(double bound) {
  return check("more than " + number_text(bound), "> " + number_text(bound), [=](const double& x) { return x > bound; });
}
NumberCheck between(double lowest, double highest) {
  return check("from " + number_text(lowest) + " to " + number_text(highest), number_text(lowest) + "-" + number_text(highest),
               [=](const double& x) { return x >= lowest && x <= highest; });
}
NumberCheck at_least_below(double lowest, double bound) {
  return check("at least " + number_text(lowest) + " and below " + number_text(bound),
               ">= " + number_text(lowest) + ", < " + number_text(bound), [=](const double& x) { return x >= lowest && x < bound; });
}

}  // namespace lacuna

#include "config/read_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace lacuna {
namespace {

const std::string& scalar_text(const ConfigNode& node, const char* expected) {
  if (!node.is_scalar()) node.fail(std::string("expected ") + expected);
  return node.text();
}

template <class Number>
bool parse(std::string text, Number& value) {
  if (!text.empty() && text[0] == '+') text.erase(0, 1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// "500u", "10e" and "2h", as other toolkits write lengths: digits, then letters alone.
bool has_unit(const std::string& text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  return digits > 0 && digits < text.size() && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(digits), text.end(), is_letter);
}

[[noreturn]] void fail_for_number(const ConfigNode& node, const std::string& expected) {
  node.fail("expected " + expected + (has_unit(node.text()) ? " without a unit (`lacuna train --help-options` says what it counts)" : ""));
}

NumberCheck check(std::string expected, std::string brief, std::function<bool(const double&)> holds) {
  NumberCheck made;
  made.expected = std::move(expected);
  made.brief = std::move(brief);
  made.holds = std::move(holds);
  return made;
}

}  // namespace

bool read_bool(const ConfigNode& node) {
  const std::string& text = scalar_text(node, "true or false");
  for (const char* yes : {"true", "True", "TRUE", "yes", "on"})
    if (text == yes) return true;
  for (const char* no : {"false", "False", "FALSE", "no", "off"})
    if (text == no) return false;
  node.fail("expected true or false");
}

int64_t read_int(const ConfigNode& node) {
  int64_t value = 0;
  if (parse(scalar_text(node, "a whole number"), value)) return value;
  double real = 0;  // 1e5 is a whole number too
  if (!parse(node.text(), real) || real != std::floor(real) || std::abs(real) > 9e15) fail_for_number(node, "a whole number");
  return static_cast<int64_t>(real);
}

double read_double(const ConfigNode& node) {
  double value = 0;
  if (!parse(scalar_text(node, "a number"), value) || !std::isfinite(value)) fail_for_number(node, "a number");
  return value;
}

std::string read_string(const ConfigNode& node) {
  if (node.is_null()) return "";
  return scalar_text(node, "text");
}

std::vector<std::string> read_strings(const ConfigNode& node) {
  if (node.is_null()) return {};
  if (node.is_scalar()) return {node.text()};
  if (!node.is_list()) node.fail("expected a list of words");
  std::vector<std::string> values;
  for (const ConfigNode& item : node.items()) values.push_back(read_string(item));
  return values;
}

std::string write_double(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end);
}

NumberCheck at_least(double lowest) {
  return check("at least " + write_double(lowest), ">= " + write_double(lowest), [=](const double& x) { return x >= lowest; });
}
NumberCheck more_than(double bound) {
  return check("more than " + write_double(bound), "> " + write_double(bound), [=](const double& x) { return x > bound; });
}
NumberCheck between(double lowest, double highest) {
  return check("from " + write_double(lowest) + " to " + write_double(highest), write_double(lowest) + "-" + write_double(highest),
               [=](const double& x) { return x >= lowest && x <= highest; });
}
NumberCheck at_least_below(double lowest, double bound) {
  return check("at least " + write_double(lowest) + " and below " + write_double(bound),
               ">= " + write_double(lowest) + ", < " + write_double(bound), [=](const double& x) { return x >= lowest && x < bound; });
}

}  // namespace lacuna

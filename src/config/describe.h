#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lacuna {

// An option is declared once, in its struct's describe():
//
//   template <class Self, class Visitor>
//   static void describe(Self& self, Visitor&& visit) {
//     visit("d_model", self.d_model, at_least(1), "width of the model: embeddings, residual stream and every sub-layer's output");
//   }
//
// Reading, defaults, range checks, --help, the saved copy and the error message all come from that line. Types: bool, int64_t, double,
// std::string, std::vector<std::string>, std::vector<int64_t>, an enum (with `choices`), IntOrAuto, DoubleOrLearned, ConfigNode (taken as
// it is), another described struct, a vector of described structs (which have a kForm: how one is written).

/// What a value must satisfy, and how to say so: "expected " + text.
template <class T>
struct Check {
  std::string expected;
  std::function<bool(const T&)> holds;
};

struct AnyValue {};
inline AnyValue any() {
  return {};
}

struct NumberCheck : Check<double> {
  std::string brief;  ///< `expected` in signs: ">= 1", "0-1024"
};
NumberCheck at_least(double lowest);
NumberCheck more_than(double bound);
NumberCheck between(double lowest, double highest);       ///< both ends belong
NumberCheck at_least_below(double lowest, double bound);  ///< lowest <= x < bound

/// The names of an enum's values, in the order they are shown.
template <class E>
struct Choices {
  std::vector<std::pair<std::string, E>> names;
};
template <class E>
Choices<E> choices(std::vector<std::pair<std::string, E>> names) {
  return {std::move(names)};
}

/// A number, or one word in its place: `batch_tokens: 4096` or `batch_tokens: auto`. No value means the word.
struct IntOrAuto {
  std::optional<int64_t> value;

  IntOrAuto() = default;
  IntOrAuto(int64_t number) : value(number) {}  // NOLINT(google-explicit-constructor): a number is one
  int64_t value_or(int64_t number) const { return value.value_or(number); }
};
/// A number or `learned`. Plain data: the maps of rows read it, on every device.
struct DoubleOrLearned {
  double value = 0;
  bool is_learned = false;
};

}  // namespace lacuna

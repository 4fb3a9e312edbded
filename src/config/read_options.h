#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "base/spelling.h"
#include "config/config_node.h"
#include "config/describe.h"

/// Described option structs from configuration trees and back (config/describe.h says what describe() is).
namespace lacuna {

// Scalars as text. Each read fails at the node with what was expected.
bool read_bool(const ConfigNode& node);
int64_t read_int(const ConfigNode& node);
double read_double(const ConfigNode& node);
std::string read_string(const ConfigNode& node);
std::vector<std::string> read_strings(const ConfigNode& node);  ///< a list, or one scalar
/// Returns the shortest text that reads back as the same number.
std::string write_double(double value);

template <class T>
concept Described = requires(T& options) {
  T::describe(options, [](auto&&...) {});
};

template <Described O>
void read_options(const ConfigNode& node, O& options);
template <Described O>
ConfigNode write_options(const O& options);

namespace options_detail {

template <class T>
void read_value(const ConfigNode& node, T& value, const AnyValue&) {
  if constexpr (std::same_as<T, bool>) value = read_bool(node);
  if constexpr (std::same_as<T, std::string>) value = read_string(node);
  if constexpr (std::same_as<T, std::vector<std::string>>) value = read_strings(node);
  if constexpr (std::same_as<T, ConfigNode>) value = node;
  if constexpr (std::same_as<T, int64_t>) value = read_int(node);
  if constexpr (std::same_as<T, double>) value = read_double(node);
  if constexpr (Described<T>) read_options(node, value);
}

/// A list of described structs; one map stands for a list of one. T::kForm is how one is written.
template <Described T>
void read_value(const ConfigNode& node, std::vector<T>& values, const AnyValue&) {
  values.clear();
  if (node.is_null()) return;
  if (!node.is_list() && !node.is_map()) node.fail(std::string("expected ") + T::kForm + ", or a list of such: [{...}, ...]");
  for (const ConfigNode& item : node.is_list() ? node.items() : std::vector<ConfigNode>{node}) {
    if (!item.is_map() && !item.is_null()) item.fail(std::string("expected ") + T::kForm);
    read_options(item, values.emplace_back());
  }
}

template <class Number>
void read_number(const ConfigNode& node, Number& value, const NumberCheck& check) {
  value = [&] {
    if constexpr (std::same_as<Number, int64_t>)
      return read_int(node);
    else
      return read_double(node);
  }();
  if (!check.holds(static_cast<double>(value))) node.fail("expected a number " + check.expected);
}
inline void read_value(const ConfigNode& node, int64_t& value, const NumberCheck& check) {
  read_number(node, value, check);
}
inline void read_value(const ConfigNode& node, double& value, const NumberCheck& check) {
  read_number(node, value, check);
}
/// A list of numbers, each of which is checked.
inline void read_value(const ConfigNode& node, std::vector<int64_t>& values, const NumberCheck& check) {
  if (!node.is_list()) node.fail("expected a list of numbers, each " + check.expected + ": [1, 2]");
  values.clear();
  for (const ConfigNode& item : node.items()) read_number(item, values.emplace_back(), check);
}

/// Returns true for the word, which leaves `value` as it is; otherwise reads the number.
template <class Number>
bool read_word_or_number(const ConfigNode& node, const std::string& word, Number& value, const NumberCheck& check) {
  if (node.is_scalar() && node.text() == word) return true;
  try {
    read_number(node, value, check);
  } catch (const ConfigError& error) {
    throw ConfigError(error.what() + (", or " + word));
  }
  return false;
}
inline void read_value(const ConfigNode& node, IntOrAuto& value, const NumberCheck& check) {
  int64_t number = 0;
  value.value.reset();
  if (!read_word_or_number(node, "auto", number, check)) value.value = number;
}
inline void read_value(const ConfigNode& node, DoubleOrLearned& value, const NumberCheck& check) {
  value.is_learned = read_word_or_number(node, "learned", value.value, check);
}

template <class E>
std::vector<std::string> names_of(const Choices<E>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices.names) names.push_back(name);
  return names;
}

template <class E>
void read_value(const ConfigNode& node, E& value, const Choices<E>& choices) {
  const std::string text = node.is_scalar() ? node.text() : "";
  for (const auto& [name, choice] : choices.names) {
    if (name != text) continue;
    value = choice;
    return;
  }
  const std::vector<std::string> names = names_of(choices);
  node.fail("expected one of " + join(names) + did_you_mean(text, names));
}

inline ConfigNode written(bool value) {
  return ConfigNode::scalar(value ? "true" : "false");
}
inline ConfigNode written(int64_t value) {
  return ConfigNode::scalar(std::to_string(value));
}
inline ConfigNode written(double value) {
  return ConfigNode::scalar(write_double(value));
}
inline ConfigNode written(const std::string& value) {
  return ConfigNode::scalar(value);
}
inline ConfigNode written(const ConfigNode& value) {
  return value;
}
inline ConfigNode written(const IntOrAuto& value) {
  return value.value ? written(*value.value) : ConfigNode::scalar("auto");
}
inline ConfigNode written(const DoubleOrLearned& value) {
  return value.is_learned ? ConfigNode::scalar("learned") : written(value.value);
}
template <Described T>
ConfigNode written(const T& value) {
  return write_options(value);
}
template <class T>
ConfigNode written(const std::vector<T>& values) {
  std::vector<ConfigNode> items;
  items.reserve(values.size());
  for (const T& value : values) items.push_back(written(value));
  return ConfigNode::list(std::move(items));
}

template <class T, class Constraint>
ConfigNode write_value(const T& value, const Constraint&) {
  return written(value);
}
template <class E>
ConfigNode write_value(const E& value, const Choices<E>& choices) {
  for (const auto& [name, choice] : choices.names)
    if (choice == value) return ConfigNode::scalar(name);
  return {};
}

}  // namespace options_detail

/// Returns the keys of a struct of options, in the order of describe().
template <Described O>
std::vector<std::string> keys_of(const O& options) {
  std::vector<std::string> keys;
  O::describe(options, [&](const char* key, const auto&, const auto&, const char*) { keys.emplace_back(key); });
  return keys;
}

/// Reads a map's values into the struct's members; keys that are not there leave their defaults. Throws ConfigError for an unknown key, a
/// value of the wrong kind or outside its range: file, line, key, value, what was expected, and the nearest known key.
template <Described O>
void read_options(const ConfigNode& node, O& options) {
  if (node.is_null()) return;
  if (!node.is_map()) node.fail("expected a map of options");
  const std::vector<std::string> known = keys_of(options);
  for (const auto& [key, value] : node.entries())
    if (std::find(known.begin(), known.end(), key) == known.end()) value.fail_as_unknown(known);
  O::describe(options, [&](const char* key, auto& value, const auto& constraint, const char*) {
    if (const ConfigNode* given = node.find(key)) options_detail::read_value(*given, value, constraint);
  });
}

template <Described O>
O read_options(const ConfigNode& node) {
  O options;
  read_options(node, options);
  return options;
}

/// Returns every option with its value, in the order of describe(); reads back as the same struct.
template <Described O>
ConfigNode write_options(const O& options) {
  ConfigNode map = ConfigNode::map({});
  O::describe(options, [&](const char* key, const auto& value, const auto& constraint, const char*) {
    map.set(key, options_detail::write_value(value, constraint));
  });
  return map;
}

}  // namespace lacuna

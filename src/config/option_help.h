#pragma once

#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/read_options.h"

namespace lacuna {

/// One option as text: what its line in describe() says.
struct OptionHelp {
  std::string key;            ///< with the sections it stands in: train.lr
  std::string type;           ///< integer, number, text, true or false, ...
  std::string default_value;  ///< as YAML; empty = none
  std::string range;          ///< "at least 1", "one of adam, adamw"; empty = any value
  std::string short_range;    ///< ">= 1", "{adam,adamw}"; empty = any value
  std::string meaning;
};

namespace options_detail {

inline std::string type_text(const bool&) {
  return "true or false";
}
inline std::string type_text(const int64_t&) {
  return "integer";
}
inline std::string type_text(const double&) {
  return "number";
}
inline std::string type_text(const std::string&) {
  return "text";
}
inline std::string type_text(const ConfigNode&) {
  return "name or map";
}
inline std::string type_text(const IntOrAuto&) {
  return "integer or auto";
}
inline std::string type_text(const DoubleOrLearned&) {
  return "number or learned";
}
template <class E>
requires std::is_enum_v<E> std::string type_text(const E&) {
  return "name";
}
template <Described T>
std::string type_text(const T&) {
  return "map";
}
template <class T>
std::string type_text(const std::vector<T>&) {
  return Described<T> ? "list of maps" : "list of " + type_text(T()) + "s";
}

inline std::string default_text(const ConfigNode& value) {
  return value.is_scalar() ? value.text() : value.items().empty() ? "" : value.to_line();
}

inline void set_range(OptionHelp&, const AnyValue&) {}
inline void set_range(OptionHelp& help, const NumberCheck& check) {
  help.range = check.expected;
  help.short_range = check.brief;
}
template <class E>
void set_range(OptionHelp& help, const Choices<E>& choices) {
  const std::vector<std::string> names = names_of(choices);
  help.range.append("one of ").append(join(names));
  help.short_range.append("{").append(join(names, ",")).append("}");
}

/// Appends the options of a struct, each key with `prefix`. The keys of a list's items follow the first list of their kind.
template <Described O>
void add_help(std::vector<OptionHelp>& all, const std::string& prefix, const O& options, std::set<std::string>& explained) {
  const auto add_items = [&]<class T>(const std::string& items, const T&) {
    if constexpr (requires { T::value_type::kForm; })
      if (explained.insert(T::value_type::kForm).second) add_help(all, items, typename T::value_type(), explained);
  };
  O::describe(options, [&](const char* key, const auto& value, const auto& constraint, const char* meaning) {
    if constexpr (Described<std::decay_t<decltype(value)>>) {
      add_help(all, prefix + key + ".", value, explained);
    } else {
      OptionHelp help = {prefix + key, type_text(value), default_text(write_value(value, constraint)), "", "", meaning};
      set_range(help, constraint);
      all.push_back(std::move(help));
    }
    add_items(prefix + key + "[].", value);
  });
}

}  // namespace options_detail

/// Every option of a struct, in the order of its describe().
template <Described O>
std::vector<OptionHelp> option_help(const std::string& prefix = "") {
  std::vector<OptionHelp> all;
  std::set<std::string> explained;
  options_detail::add_help(all, prefix, O(), explained);
  return all;
}

/// The lines of --help-options: two for each option, each begun by `indent`.
std::string help_lines(const std::vector<OptionHelp>& options, const std::string& indent = "");

}  // namespace lacuna

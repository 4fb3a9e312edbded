#pragma once

#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/read_options.h"

namespace lacuna {

/// The lines of --help-options: two for each option of a described struct, from its describe(). What the items of a list hold follows the
/// first list of such.
class HelpWriter {
 public:
  /// Each line begins with `indent`, each key with `prefix`.
  explicit HelpWriter(std::string indent = "") : indent_(std::move(indent)) {}

  template <Described O>
  void add(const std::string& prefix, const O& options) {
    O::describe(options, [&](const char* key, const auto& value, const auto& constraint, const char* meaning) {
      using Value = std::decay_t<decltype(value)>;
      if constexpr (Described<Value>)
        add(prefix + key + ".", value);
      else
        line(prefix + key, default_text(options_detail::write_value(value, constraint)) + range_text(constraint), meaning);
      add_items(prefix + key + "[].", value);
    });
  }
  const std::string& text() const { return text_; }

 private:
  template <Described T>
  void add_items(const std::string& prefix, const std::vector<T>&) {
    if (explained_.insert(T::kForm).second) add(prefix, T());
  }
  template <class T>
  void add_items(const std::string&, const T&) {}
  void line(const std::string& key, const std::string& facts, const char* meaning) {
    text_ += indent_ + key + "  (" + facts + ")\n" + indent_ + "    " + meaning + "\n";
  }
  static std::string default_text(const ConfigNode& value) {
    if (value.is_scalar() && !value.text().empty()) return "default " + value.text();
    if (!value.items().empty()) return "default " + value.to_line();
    return "default: none";
  }
  static std::string range_text(const AnyValue&) { return ""; }
  static std::string range_text(const NumberCheck& check) { return "; " + check.expected; }
  template <class E>
  static std::string range_text(const Choices<E>& choices) {
    return "; one of " + join(options_detail::names_of(choices));
  }

  std::string indent_, text_;
  std::set<std::string> explained_;
};

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lacuna {

/// `json` as text, without a line break at its end: in one line, or with `indent` spaces for each level. Bytes that are not UTF-8, as paths
/// and pieces of byte fallback may have, become U+FFFD; `dump` alone would throw.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

inline constexpr int kDeepestJson = 64;

/// True if brackets stand in one another beyond all use. To parse that takes far more memory than the text has, and to copy or write it,
/// more stack than there is.
inline bool is_too_deep(std::string_view json) {
  bool is_in_quotes = false;
  int depth = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') is_in_quotes = !is_in_quotes;
    if (is_in_quotes && c == '\\') ++i;
    if (is_in_quotes) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepestJson) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

/// Parses a text that anybody may have written. Throws nlohmann's parse_error for what is no JSON, or too deep.
template <class Json = nlohmann::json>
Json parsed_json(std::string_view text) {
  if (is_too_deep(text))
    throw nlohmann::json::parse_error::create(101, 0, "nested more than " + std::to_string(kDeepestJson) + " levels deep", nullptr);
  return Json::parse(text);
}

/// Returns a whole number from 0 to `most`. Throws nlohmann's type_error for anything else: `get` makes some number of 1e308, -1, 0.5 and
/// true.
inline int64_t natural_number(const nlohmann::json& json, int64_t most = std::numeric_limits<int64_t>::max()) {
  if (json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(most)) return json.get<int64_t>();
  std::string text = "expected a whole number of 0 or more";
  if (most < std::numeric_limits<int64_t>::max()) text.append(", ").append(std::to_string(most)).append(" at most");
  text.append(", found ").append(json.is_structured() ? json.type_name() : json.dump().substr(0, 40));
  throw nlohmann::json::type_error::create(302, text, &json);
}

}  // namespace lacuna

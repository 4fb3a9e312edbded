#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace lacuna {

/// `json` as text, without a line break at its end: in one line, or with `indent` spaces for each level. Bytes that are not UTF-8, as paths
/// and pieces of byte fallback may have, become U+FFFD; `dump` alone would throw.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Returns a whole number of 0 or more. Throws nlohmann's type_error for anything else: `get` makes some number of 1e308, -1, 0.5 and true.
inline int64_t natural_number(const nlohmann::json& json) {
  constexpr auto kMost = uint64_t{std::numeric_limits<int64_t>::max()};
  if (json.is_number_unsigned() && json.get<uint64_t>() <= kMost) return json.get<int64_t>();
  throw nlohmann::json::type_error::create(302, "expected a whole number of 0 or more, found " + json.dump().substr(0, 40), &json);
}

}  // namespace lacuna

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lacuna {

/// `json` as text, without a line break at its end: in one line, or with `indent` spaces for each level. Bytes that are not UTF-8, as paths
/// and pieces of byte fallback may have, become U+FFFD; `dump` alone would throw.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lacuna

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/line_options.h"

/// What fields of a line of JSON may mean beside its text and its options (line_options.h).
namespace lacuna {

/// A field that is passed through although it could be meant for one with a meaning.
struct NearMiss {
  std::string key;
  std::string message;  ///< begins with the place of the line
};

/// Returns the fields that are named almost like one with a meaning and have a value that it could have. `place` begins the messages.
std::vector<NearMiss> near_misses(const nlohmann::ordered_json& fields, const std::string& place);

/// Throws LineError, which begins with `place`, for a field that asks for a line what all lines share, such as their format. A value that
/// asks for nothing of the kind is passed through: "split": "train" is of the user's own.
void require_none_shared(const nlohmann::ordered_json& fields, const LineSettings& settings, const std::string& place);

/// Returns true for "tokens": true. A list is of an earlier translation. Throws LineError, which begins with `place`, for anything else but
/// false and null.
bool asks_for_tokens(const nlohmann::ordered_json& fields, const std::string& place);

/// Returns a value as messages show it: the first 100 bytes of its JSON.
std::string shown_value(const nlohmann::ordered_json& value);

}  // namespace lacuna

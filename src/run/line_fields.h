#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What fields of a line of JSON may mean beside its text and its options (line_options.h).
namespace lacuna {

struct TranslationFormat;

/// A field that is passed through although it could be meant for one with a meaning.
struct NearMiss {
  std::string key;
  std::string message;  ///< begins with the place of the line
};

/// Returns the fields that have one letter wrong in the name of one with a meaning, or the name that other programs have for it, and a
/// value that it could have in such lines. `place` begins the messages.
std::vector<NearMiss> near_misses(const nlohmann::ordered_json& fields, const TranslationFormat& format, const std::string& place);

/// Throws LineError, which begins with `place`, for a field that asks for something else than all lines have, such as their format. A value
/// that asks for what they have, or for nothing of the kind, is passed through: "split": "train" is of the user's own.
void require_none_shared(const nlohmann::ordered_json& fields, const TranslationFormat& format, const std::string& place);

/// Returns true for "tokens": true. Throws LineError, which begins with `place`, for what says so in another type; a list, as of an earlier
/// translation, a count and others ask for nothing.
bool asks_for_tokens(const nlohmann::ordered_json& fields, const std::string& place);

/// Returns a value as messages show it: the first 100 bytes of its JSON.
std::string shown_value(const nlohmann::ordered_json& value);

}  // namespace lacuna

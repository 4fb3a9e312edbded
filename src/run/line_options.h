#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// What the lines of a text may ask for themselves, as "beam_size": 1 in JSON.
struct LineSettings {
  TranslateOptions common = {};  ///< of the lines that ask for nothing
  bool are_bounded = false;      ///< of a service: a line may make its search cheaper than the common options do, but not dearer
};

/// Returns the common options with those that a line of JSON has for itself; null if it has none. An option that is null is not given.
/// Throws LineError, which begins with `place`, for a value that is out of range, for an option that all lines share, for one that changes
/// nothing in a search or a draw, and for a field that is named almost like an option.
std::shared_ptr<const TranslateOptions> own_options(const nlohmann::ordered_json& fields, const LineSettings& settings,
                                                    const std::string& place);

/// Returns the options of `translate` that a value could be meant for: of its type, and if it is a word, one of theirs. Of bounded lines
/// only what they may have.
std::vector<std::string> options_taking(const nlohmann::ordered_json& value, const LineSettings& settings);

}  // namespace lacuna

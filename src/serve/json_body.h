#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna::serve {

/// Reads the JSON object of a body, nested a few levels deep at most. Throws RequestError 400, which says that `expected` is expected.
nlohmann::ordered_json parsed_object(const std::string& body, const std::string& expected);

// Values of such an object. Each throws RequestError 400, which calls the value `name`, for one of another type, and for what is no text.
std::string string_of(const nlohmann::ordered_json& value, const std::string& name);
std::vector<std::string> strings_of(const nlohmann::ordered_json& value, const std::string& name);  ///< of a list
bool switch_in(const nlohmann::ordered_json& value, const std::string& name);                       ///< also of "true", "1", "false", "0"

}  // namespace lacuna::serve

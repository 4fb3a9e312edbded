#include "exchange/incoming_json.h"

#include <limits>

#include "base/error.h"
#include "base/json_text.h"

namespace lacuna {

const nlohmann::json* IncomingJson::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void IncomingJson::refuse(const std::string& key, const std::string& expected) const {
  constexpr size_t kShown = 60;
  const nlohmann::json* const value = find(key);
  std::string shown = value == nullptr ? "missing" : json_text(*value);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
  throw DataError(path_ + ": " + key + " is " + shown + "; expected " + expected);
}

std::optional<int64_t> IncomingJson::number(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number_unsigned() || value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    refuse(key, "a whole number of 0 or more");
  return value->get<int64_t>();
}

std::optional<double> IncomingJson::real(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_number()) refuse(key, "a number");
  return value->get<double>();
}

std::optional<bool> IncomingJson::flag(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> IncomingJson::text(const std::string& key) const {
  const nlohmann::json* value = find(key);
  if (value != nullptr && value->is_object() && value->contains("content")) value = &(*value)["content"];
  if (value == nullptr) return {};
  if (!value->is_string()) refuse(key, "a text");
  return value->get<std::string>();
}

bool IncomingJson::has_list(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  return value != nullptr && value->is_array();
}

std::vector<nlohmann::json> IncomingJson::list(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) refuse(key, "a list");
  return value->get<std::vector<nlohmann::json>>();
}

nlohmann::json IncomingJson::object(const std::string& key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return nlohmann::json::object();
  if (!value->is_object()) refuse(key, "an object");
  return *value;
}

int64_t IncomingJson::required(const std::string& key) const {
  const std::optional<int64_t> value = number(key);
  if (!value) refuse(key, "a whole number");
  return *value;
}

void IncomingJson::require_flag(const std::string& key, bool value) const {
  if (flag(key).value_or(value) != value)
    refuse(key, value ? "true, the only value that Lacuna reads" : "false, the only value that Lacuna reads");
}

}  // namespace lacuna

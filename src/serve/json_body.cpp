#include "serve/json_body.h"

#include "serve/api.h"
#include "serve/form.h"

namespace lacuna::serve {

using nlohmann::ordered_json;

ordered_json parsed_object(const std::string& body, const std::string& expected) {
  constexpr int kDeepest = 8;
  bool is_deep = false;
  const auto look = [&](int level, ordered_json::parse_event_t /*event*/, ordered_json& /*value*/) {
    is_deep = is_deep || level > kDeepest;
    return !is_deep;
  };
  ordered_json object = ordered_json::parse(body, look, false);
  if (is_deep || !object.is_object()) throw RequestError(400, "the body is not a JSON object; expected " + expected);
  return object;
}

std::string string_of(const ordered_json& value, const std::string& name) {
  if (!value.is_string()) throw RequestError(400, name + " is " + std::string(value.type_name()) + "; expected a string");
  auto text = value.get<std::string>();
  require_text(text, name);
  return text;
}

std::vector<std::string> strings_of(const ordered_json& value, const std::string& name) {
  if (!value.is_array()) throw RequestError(400, name + " is " + std::string(value.type_name()) + "; expected a list of strings");
  std::vector<std::string> texts;
  texts.reserve(value.size());
  for (const ordered_json& one : value) texts.push_back(string_of(one, "an item of " + name));
  return texts;
}

bool switch_in(const ordered_json& value, const std::string& name) {
  return value.is_boolean() ? value.get<bool>() : switch_of(string_of(value, name), name);
}

}  // namespace lacuna::serve

#include "serve/form.h"

#include <algorithm>
#include <charconv>

#include "base/files.h"

namespace lacuna::serve {
namespace {

std::string decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      unsigned value = 0;
      const char* const digits = text.data() + i + 1;
      if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
        throw RequestError(400, "the form holds a % without two hexadecimal digits behind it");
      plain += static_cast<char>(value);
      i += 2;
    }
  }
  require_text(plain, "the form");
  return plain;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> form_fields(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    const size_t sign = std::min(field.find('='), field.size());
    fields.emplace_back(decoded(field.substr(0, sign)), decoded(field.substr(std::min(field.size(), sign + 1))));
  }
  return fields;
}

Form parse_form(std::string_view text) {
  Form form;
  for (auto& field : form_fields(text)) form.insert(std::move(field));
  return form;
}

void require_form(std::string_view body) {
  const size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && body[begin] == '{')
    throw RequestError(
        400, "the body looks like JSON, and its Content-Type is another or none; send the header Content-Type: application/json with it");
}

std::string value_of(const Form& form, const std::string& name, const std::string& otherwise) {
  const auto found = form.find(name);
  return found == form.end() ? otherwise : found->second;
}

int64_t number_of(const std::string& text, const std::string& name, int64_t most) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr != end || number < 0 || number > most)
    throw RequestError(400, name + " is not a whole number from 0 to " + std::to_string(most));
  return number;
}

void require_text(const std::string& text, const std::string& what) {
  if (text.find('\0') != std::string::npos) throw RequestError(400, what + " holds a NUL character; expected text");
  if (const auto bad = first_invalid_utf8(text))
    throw RequestError(400, what + ": byte " + std::to_string(*bad + 1) + " is not UTF-8; expected text");
}

std::string escaped_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace lacuna::serve

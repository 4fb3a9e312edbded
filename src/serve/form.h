#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/exchange.h"

namespace lacuna::serve {

/// Reads "name=value&..." with its %XX and +. Of names that come several times the first counts. Throws RequestError for a damaged %XX, and
/// for what is not UTF-8 then.
Form parse_form(std::string_view text);

/// Reads the same, all fields in order.
std::vector<std::pair<std::string, std::string>> form_fields(std::string_view text);

/// Throws RequestError 400 for a body that looks like JSON, although its Content-Type says that it is a form, or nothing.
void require_form(std::string_view body);

/// Returns the value of a name, or `otherwise`.
std::string value_of(const Form& form, const std::string& name, const std::string& otherwise = "");

/// Reads a whole number from 0 to `most`. Throws RequestError, which calls it `name`.
int64_t number_of(const std::string& text, const std::string& name, int64_t most);

/// Throws RequestError unless the text is UTF-8 without a NUL character. `what` names it.
void require_text(const std::string& text, const std::string& what);

/// Returns the text with the signs of HTML escaped.
std::string escaped_html(std::string_view text);

}  // namespace lacuna::serve

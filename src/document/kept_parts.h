#pragma once

#include <string_view>
#include <vector>

#include "document/span.h"

namespace lacuna::document {

/// Returns the parts of a text that no translation may change, in order: code in backquotes, placeholders ({name}, {{name}}, ${x}, %s,
/// %1$s, %(name)d, %{x}, %NAME%), web and e-mail addresses.
std::vector<Span> kept_parts(std::string_view text);

}  // namespace lacuna::document

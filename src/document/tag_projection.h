#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "document/linked_text.h"
#include "document/span.h"

namespace lacuna::document {

/// An element of a marked-up text: its tags, and the part of the text between them. One without an end, such as an image, is a point.
struct Element {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string open, close = {};
  Span place = {};
  size_t parent = kNone;  ///< number of the element around it, which comes before it
  bool is_point = false;
  bool is_spaced = false;  ///< a point with white space on both sides
};

/// Returns the translation of a marked-up text with its elements, each once and nested as they were: around the words that are linked with
/// those it has in the source, as far as they stand together; where links are missing, beside the translations of its neighbors. `elements`
/// come in the order of their beginnings; `written` makes markup of a part of the translation.
std::string with_elements(std::string_view source, const LinkedText& translation, const std::vector<Element>& elements,
                          const std::function<std::string(std::string_view)>& written);

}  // namespace lacuna::document

#pragma once

#include <cstddef>
#include <string_view>

namespace lacuna::document {

/// A part of a text, in bytes.
struct Span {
  size_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const Span&) const = default;
};

}  // namespace lacuna::document

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "document/span.h"

namespace lacuna::document {

/// A link between a word of a source and a word of its translation, both counted from 0. Spaces separate words, and any white space does
/// between sentences.
using Link = std::pair<int32_t, int32_t>;
using Links = std::vector<Link>;

/// A translation with its word links; without any, where the model gives none.
struct LinkedText {
  std::string text;
  Links links = {};
};

/// Returns the words of a sentence.
std::vector<Span> words_of(std::string_view text);

/// Joins translations to one, with its links.
class LinkedTextJoiner {
 public:
  /// Adds what stands in both texts.
  void add_common(std::string_view text);
  /// Adds what stands in one of the texts alone.
  void add_source(std::string_view text) { src_.add(text); }
  void add_target(std::string_view text);
  /// Adds a translation of `source`.
  void add(std::string_view source, const LinkedText& translation);

  const std::string& text() const { return joined_.text; }
  LinkedText joined() && { return std::move(joined_); }

 private:
  /// Counts the words of a text that comes in parts.
  struct Words {
    int32_t count = 0;
    bool is_in_word = false;

    /// Returns the number of the first word of a part that comes next.
    int32_t next(std::string_view text) const { return is_in_word && !text.starts_with(' ') ? count - 1 : count; }
    void add(std::string_view text);
  };

  Words src_, tgt_;
  LinkedText joined_;
};

}  // namespace lacuna::document

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "document/span.h"

struct UBreakIterator;

namespace lacuna::document {

/// Finds the sentences of a text: borders are those of Unicode's rules (UAX 29, by ICU), but for those behind abbreviations, initials and
/// ordinals, and before small letters. Safe for threads.
class SentenceSplitter {
 public:
  /// `language` is a code such as de, deu or de_AT; for one that is not known, or none, the rules of all languages hold.
  explicit SentenceSplitter(const std::string& language = "");

  /// Returns the code of the language whose rules hold; empty for those of all.
  const std::string& language() const { return language_; }
  /// Returns the sentences of a text in order, without the white space around them. Nothing else is left out.
  std::vector<Span> sentences(std::string_view text) const;

 private:
  struct Close {
    void operator()(UBreakIterator* iterator) const;
  };
  using Iterator = std::unique_ptr<UBreakIterator, Close>;

  bool is_within_sentence(std::string_view before, std::string_view behind) const;

  std::string language_;  // two letters, if there are two for it
  Iterator rules_;
};

}  // namespace lacuna::document

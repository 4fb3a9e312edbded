#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/clauses.h"
#include "document/linked_text.h"
#include "document/sentence_splitter.h"
#include "document/stand_ins.h"

namespace lacuna::document {

/// How text is cut into what a model translates at a time.
struct Splitting {
  SentenceSplitter splitter;
  int64_t longest = 0;  ///< pieces that a sentence may have: longer ones are cut
  Measure pieces;       ///< the model's, of a text
};

/// A text without line breaks of its own meaning, whose sentences are translated each for itself. Its kept parts come back once each: where
/// the translation of a sentence loses one, those of the texts around them stand for it. Terms are translated as they were, and then put
/// where their own translations are, or the words that are linked with them.
class Paragraph {
 public:
  Paragraph(const std::vector<TextPart>& parts, const Splitting& how);
  /// Takes the text for one sentence.
  explicit Paragraph(const std::vector<TextPart>& parts);

  /// Appends what is to be translated, and remembers where.
  void append_to(std::vector<std::string>& sentences);
  /// Adds the translation of the text, from those of all that append_to() has filled; `used` grows by the numbers of those that count.
  /// White space around sentences stays; where there is none, as in Chinese, a space comes between words of languages that have spaces.
  void add_translation(std::span<const LinkedText> translations, LinkedTextJoiner& joiner, std::vector<size_t>& used) const;
  /// Does that with marks of stand_ins() in place of kept parts.
  void add_marked_translation(std::span<const LinkedText> translations, LinkedTextJoiner& joiner, std::vector<size_t>& used) const;
  const StandIns& stand_ins() const { return stand_ins_; }

 private:
  struct Sentence {
    Span place;
    size_t first_kept = 0, num_kept = 0;
    bool has_terms = false;          // among its kept parts
    std::vector<Span> between = {};  // the texts between kept parts
    size_t first = 0;                // number of its translation; those of `between` follow, if not all kept parts are terms
  };

  void add_sentence(Span place);
  LinkedText marked_translation(const Sentence& sentence, std::span<const LinkedText> translations, std::vector<size_t>& used) const;
  LinkedText from_parts(const Sentence& sentence, std::span<const LinkedText> translations) const;
  void add(std::span<const LinkedText> translations, LinkedTextJoiner& joiner, std::vector<size_t>& used, bool is_restored) const;

  StandIns stand_ins_;
  std::vector<Sentence> sentences_;
};

}  // namespace lacuna::document

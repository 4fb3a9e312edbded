#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/linked_text.h"
#include "document/span.h"

namespace lacuna::document {

/// A part of a text: to be translated, or to come back as it is or, if it is a term, as its translation.
struct TextPart {
  std::string text;
  bool is_kept = false;
  std::string term = {};  ///< what a kept part is to be in the translation; empty = the same

  bool is_term() const { return !term.empty(); }
};

/// Returns a plain text as parts; what no translation may change is kept.
std::vector<TextPart> parts_of(std::string_view text);

/// Words such as X1 that stand for the kept parts of a text while it is translated. A stand-in that came back is a mark, which no text
/// holds; restored() puts the kept part in its place.
class StandIns {
 public:
  /// Makes the text with stand-ins, none of which it holds otherwise, and without control characters U+0001.
  explicit StandIns(const std::vector<TextPart>& parts);

  const std::string& text() const { return text_; }
  /// Returns where each part begins in text(), and where the last one ends.
  const std::vector<size_t>& part_borders() const { return part_borders_; }
  /// Returns where they stand, in order.
  const std::vector<Span>& places() const { return places_; }
  /// Returns the translation of with_terms(part) in which each of its stand-ins, the `first` and those behind it, is a mark: one that came
  /// back as it was, or else the one word that is linked with it. None where one is lost, came several times, or others came. `source` is
  /// that text.
  std::optional<LinkedText> marked(std::string_view source, const LinkedText& translation, size_t first, size_t count) const;
  /// Returns true if one of these kept parts is a term.
  bool has_terms(size_t first, size_t count) const;
  /// Returns true if all of these kept parts are terms.
  bool are_all_terms(size_t first, size_t count) const;
  /// Returns a part of text() with terms as they were, and no stand-ins for them.
  std::string with_terms(Span part) const;
  /// Returns the translation of with_terms(part) in which each of its terms is a mark: in place of its own translation, where that is
  /// there, or else of the words that are linked with it; without such words it comes beside those that are linked with its neighbors.
  LinkedText marked_terms(Span part, const LinkedText& translation, size_t first, size_t count) const;
  /// Returns the mark of a stand-in.
  std::string mark(size_t index) const { return kMark + std::to_string(index) + kMark; }
  /// Returns a translation with the kept parts in place of marks; others are as `escape` makes them, if it is given.
  std::string restored(std::string_view marked, std::string (*escape)(std::string_view) = nullptr) const;
  /// Returns a source with the kept parts in place of marks.
  std::string restored_source(std::string_view marked) const;
  /// Returns a translation with the kept parts in place of marks in both texts, and with links that count their words.
  LinkedText restored(const std::string& marked_source, const LinkedText& marked) const;
  /// Returns a part of text() with marks in place of stand-ins.
  std::string marked(Span part) const;

 private:
  static constexpr char kMark = '\x01';

  std::string name(size_t index) const { return "X" + std::to_string(first_number_ + index); }
  size_t index_at(std::string_view text, size_t at, size_t& end) const;
  template <class Kept>
  std::string with_kept(std::string_view marked, std::string (*escape)(std::string_view), const Kept& kept) const;

  size_t first_number_ = 1;
  std::string text_;
  std::vector<size_t> part_borders_ = {0};
  std::vector<Span> places_;
  std::vector<TextPart> kept_;
};

}  // namespace lacuna::document

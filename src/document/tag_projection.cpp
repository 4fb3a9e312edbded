#include "document/tag_projection.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "document/characters.h"

namespace lacuna::document {
namespace {

constexpr char kMarkOfStandIn = '\x01';  // as StandIns writes it

bool is_letter_of_word(UChar32 character) {
  return u_isalnum(character) != 0 || character == kMarkOfStandIn;
}

/// Returns the word without punctuation at its ends; the word itself if it has nothing else.
Span without_outer_marks(std::string_view text, Span word) {
  Span core = word;
  while (core.size() > 0 && !is_letter_of_word(character_at(text, core.begin))) core.begin = next_character(text, core.begin);
  while (core.size() > 0 && !is_letter_of_word(character_before(text, core.end))) core.end = previous_character(text, core.end);
  return core.size() == 0 ? word : core;
}

/// A range of words.
struct WordRange {
  int32_t begin = 0, end = 0;

  int32_t size() const { return end - begin; }
  bool overlaps(WordRange other) const { return begin < other.end && other.begin < end; }
};

/// Finds out where elements begin and end in the translation, from the outer to the inner ones, and writes them.
class Projection {
 public:
  Projection(std::string_view source, const LinkedText& translation, const std::vector<Element>& elements,
             const std::function<std::string(std::string_view)>& written)
      : source_(source),
        target_(translation.text),
        elements_(elements),
        written_(written),
        src_words_(words_of(source_)),
        tgt_words_(words_of(target_)),
        src_of_(tgt_words_.size(), -1),
        tgts_of_(src_words_.size()),
        children_(elements.size() + 1),
        places_(elements.size()) {
    for (const auto& [src, tgt] : translation.links)
      if (static_cast<size_t>(tgt) < src_of_.size() && static_cast<size_t>(src) < src_words_.size())
        src_of_[static_cast<size_t>(tgt)] = src;
    for (size_t tgt = 0; tgt < src_of_.size(); ++tgt)
      if (src_of_[tgt] >= 0) tgts_of_[static_cast<size_t>(src_of_[tgt])].push_back(static_cast<int32_t>(tgt));
    for (size_t i = 0; i < elements_.size(); ++i) children_[slot_of(elements_[i].parent)].push_back(i);
    for (size_t i = 0; i < elements_.size(); ++i) places_[i] = place_of(i);
  }

  std::string written() {
    std::string text;
    write(Element::kNone, {0, target_.size()}, text);
    return text;
  }

 private:
  size_t slot_of(size_t element) const { return element == Element::kNone ? elements_.size() : element; }

  /// Returns the words of the source that an element has: whole ones, or else the one that it has most of.
  WordRange source_words(const Element& element) const {
    const auto first = std::ranges::upper_bound(src_words_, element.place.begin, {}, &Span::end);
    WordRange words{static_cast<int32_t>(first - src_words_.begin()), static_cast<int32_t>(first - src_words_.begin())};
    for (auto word = first; word != src_words_.end() && word->begin < element.place.end; ++word) {
      const Span core = without_outer_marks(source_, *word);
      const size_t begin = std::max(core.begin, element.place.begin), end = std::min(core.end, element.place.end);
      if (end <= begin || 2 * (end - begin) < core.size()) continue;
      const auto at = static_cast<int32_t>(word - src_words_.begin());
      if (words.size() == 0) words.begin = at;
      words.end = at + 1;
    }
    if (words.size() == 0 && element.place.size() > 0 && first != src_words_.end() && first->begin < element.place.end) ++words.end;
    return words;
  }

  /// Returns the words of the translation around which an element stands; none of them for a point. Those of its elder siblings are taken.
  WordRange place_of(size_t index) const {
    const Element& element = elements_[index];
    const WordRange around =
        element.parent == Element::kNone ? WordRange{0, static_cast<int32_t>(tgt_words_.size())} : places_[element.parent];
    const WordRange src = source_words(element);
    const std::vector<WordRange> free = free_ranges(index, around);
    if (!element.is_point && src.size() > 0)
      if (const auto best = best_range(src, free)) return *best;
    const int32_t border = free_border(border_beside(src, around), index, around);
    if (element.is_point || src.size() == 0) return {border, border};
    for (const WordRange& range : free)  // a word of its own, so that the element is not empty
      if (range.size() > 0 && range.begin <= border && border <= range.end)
        return border < range.end ? WordRange{border, border + 1} : WordRange{border - 1, border};
    return {border, border};
  }

  /// Returns the ranges within the parent that no elder sibling has.
  std::vector<WordRange> free_ranges(size_t index, WordRange around) const {
    std::vector<WordRange> taken;
    for (const size_t sibling : children_[slot_of(elements_[index].parent)])
      if (sibling < index && places_[sibling].size() > 0) taken.push_back(places_[sibling]);
    std::ranges::sort(taken, {}, &WordRange::begin);
    std::vector<WordRange> free;
    for (const WordRange one : taken) {
      free.push_back({around.begin, one.begin});
      around.begin = one.end;
    }
    free.push_back(around);
    for (const size_t sibling : children_[slot_of(elements_[index].parent)]) {  // points stay outside
      if (sibling >= index || places_[sibling].size() > 0) continue;
      const int32_t border = places_[sibling].begin;
      for (size_t i = 0; i < free.size(); ++i) {
        if (free[i].begin >= border || border >= free[i].end) continue;
        const WordRange behind{border, free[i].end};
        free[i].end = border;
        free.insert(free.begin() + static_cast<std::ptrdiff_t>(i) + 1, behind);
      }
    }
    return free;
  }

  /// Returns the range with the most words that are linked with `src`, less those that are linked with others; none if no word is.
  std::optional<WordRange> best_range(WordRange src, const std::vector<WordRange>& free) const {
    std::optional<WordRange> best;
    int best_sum = 0;
    for (const WordRange range : free) {
      int sum = 0;
      int32_t begin = range.begin;
      for (int32_t tgt = range.begin; tgt < range.end; ++tgt) {
        const int32_t from = src_of_[static_cast<size_t>(tgt)];
        const bool is_inside = from >= src.begin && from < src.end;
        if (sum <= 0) {
          sum = 0;
          begin = tgt;
        }
        if (is_inside) ++sum;
        if (!is_inside && from >= 0) --sum;
        if (is_inside && sum > best_sum) {
          best_sum = sum;
          best = WordRange{begin, tgt + 1};
        }
      }
    }
    return best;
  }

  /// Returns the border between words of the translation where a place of the source would be, by the nearest words that are linked.
  int32_t border_beside(WordRange src, WordRange around) const {
    const auto count = static_cast<int32_t>(src_words_.size());
    constexpr int32_t kFar = 8;
    for (int32_t distance = 0; distance <= kFar; ++distance) {
      if (const int32_t left = src.begin - 1 - distance; left >= 0) {
        const std::vector<int32_t>& tgts = tgts_of_[static_cast<size_t>(left)];
        const auto behind = std::ranges::lower_bound(tgts, around.end);
        if (behind != tgts.begin() && *std::prev(behind) >= around.begin) return *std::prev(behind) + 1;
      }
      if (const int32_t right = src.end + distance; right < count) {
        const std::vector<int32_t>& tgts = tgts_of_[static_cast<size_t>(right)];
        const auto first = std::ranges::lower_bound(tgts, around.begin);
        if (first != tgts.end() && *first < around.end) return *first;
      }
    }
    const auto all = static_cast<int32_t>(tgt_words_.size());
    return std::clamp(count == 0 ? 0 : static_cast<int32_t>(int64_t{src.begin} * all / count), around.begin, around.end);
  }

  /// Returns the nearest border that lies within no elder sibling.
  int32_t free_border(int32_t border, size_t index, WordRange around) const {
    for (const size_t sibling : children_[slot_of(elements_[index].parent)])
      if (sibling < index && places_[sibling].begin < border && border < places_[sibling].end) return places_[sibling].end;
    return std::clamp(border, around.begin, around.end);
  }

  /// Writes what an element has: a part of the translation with its children.
  void write(size_t element, Span part, std::string& text) {
    std::vector<size_t> children = children_[slot_of(element)];
    std::ranges::stable_sort(children, [this](size_t a, size_t b) {
      return places_[a].begin != places_[b].begin ? places_[a].begin < places_[b].begin : places_[a].end < places_[b].end;
    });
    for (const size_t child : children) {
      Span place = bytes_of_place(child);
      place.begin = std::clamp(place.begin, part.begin, part.end);
      place.end = std::clamp(place.end, place.begin, part.end);
      text += written_(Span{part.begin, place.begin}.of(target_));
      part.begin = place.begin;
      const Element& one = elements_[child];
      const bool is_behind_all = one.is_spaced && place.begin == part.end;
      if (is_behind_all) text += ' ';
      text += one.open;
      write(child, place, text);
      text += one.close;
      if (one.is_spaced && !is_behind_all) text += ' ';
      part.begin = place.end;
    }
    text += written_(part.of(target_));
  }

  /// Returns the bytes of the words that an element stands around, without the punctuation that it does not have in the source.
  Span bytes_of_place(size_t index) const {
    const WordRange words = places_[index];
    const auto at = [this](int32_t word) { return tgt_words_[static_cast<size_t>(word)]; };
    if (words.size() == 0) {
      const size_t border = static_cast<size_t>(words.begin) < tgt_words_.size() ? at(words.begin).begin : target_.size();
      return {border, border};
    }
    Span place{at(words.begin).begin, at(words.end - 1).end};
    const WordRange src = source_words(elements_[index]);
    if (src.size() == 0) return place;
    const Span first = src_words_[static_cast<size_t>(src.begin)], last = src_words_[static_cast<size_t>(src.end - 1)];
    if (elements_[index].place.begin > first.begin) place.begin = without_outer_marks(target_, at(words.begin)).begin;
    if (elements_[index].place.end < last.end) place.end = without_outer_marks(target_, at(words.end - 1)).end;
    return place;
  }

  std::string_view source_, target_;
  const std::vector<Element>& elements_;
  const std::function<std::string(std::string_view)>& written_;
  std::vector<Span> src_words_, tgt_words_;
  std::vector<int32_t> src_of_;                // the source word that each word is linked with; -1 = none
  std::vector<std::vector<int32_t>> tgts_of_;  // the words that are linked with each of the source
  std::vector<std::vector<size_t>> children_;  // of each element, and of the text
  std::vector<WordRange> places_;              // of each element
};

}  // namespace

std::string with_elements(std::string_view source, const LinkedText& translation, const std::vector<Element>& elements,
                          const std::function<std::string(std::string_view)>& written) {
  return Projection(source, translation, elements, written).written();
}

}  // namespace lacuna::document

#include "document/stand_ins.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "document/characters.h"
#include "document/kept_parts.h"

namespace lacuna::document {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

/// Reads X and a number, as a word of its own, that begin at `at`. Returns their end and the number; `at` if there is nothing of the kind.
std::pair<size_t, size_t> numbered_word(std::string_view text, size_t at) {
  constexpr size_t kMostDigits = 9;
  size_t end = at + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const bool is_apart =
      (at == 0 || u_isalnum(character_before(text, at)) == 0) && (end == text.size() || u_isalnum(character_at(text, end)) == 0);
  if (!is_apart || end == at + 1 || end - at > kMostDigits) return {at, 0};
  size_t number = 0;
  std::from_chars(text.data() + at + 1, text.data() + end, number);
  return {end, number};
}

/// Returns the span without what is neither letter nor digit at its ends.
Span core_of(std::string_view text, Span word) {
  while (word.size() > 0 && u_isalnum(character_at(text, word.begin)) == 0) word.begin = next_character(text, word.begin);
  while (word.size() > 0 && u_isalnum(character_before(text, word.end)) == 0) word.end = previous_character(text, word.end);
  return word;
}

/// Returns for each word of a marked text how many words stand before it once restored(word) is in place of each.
template <class Restored>
std::vector<int32_t> words_before(std::string_view marked, const Restored& restored) {
  std::vector<int32_t> before;
  int32_t count = 0;
  for (const Span word : words_of(marked)) {
    before.push_back(count);
    count += std::max<int32_t>(1, static_cast<int32_t>(words_of(restored(word.of(marked))).size()));
  }
  return before;
}

/// Returns the number of the word that each of `words` becomes where spans of a text turn into one word each, and the rest of words stays.
std::vector<int32_t> merged_words(const std::vector<Span>& words, const std::vector<Span>& spans) {
  std::vector<int32_t> numbers;
  numbers.reserve(words.size());
  int32_t next = 0;
  size_t span = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    while (span < spans.size() && spans[span].end <= words[i].begin) ++span;
    const bool goes_on = i > 0 && span < spans.size() && spans[span].begin < words[i - 1].end && words[i].begin < spans[span].end;
    if (i > 0 && !goes_on) ++next;
    numbers.push_back(next);
  }
  return numbers;
}

/// Returns where a term stands in a text as whole words, behind `from`; an empty span if it does not.
Span occurrence(std::string_view text, std::string_view term, size_t from) {
  const auto is_apart = [text](size_t at) {
    return at == 0 || at == text.size() || u_isalnum(character_before(text, at)) == 0 || u_isalnum(character_at(text, at)) == 0;
  };
  for (size_t at = from; (at = text.find(term, at)) != std::string_view::npos; at = next_character(text, at))
    if (is_apart(at) && is_apart(at + term.size())) return {at, at + term.size()};
  return {};
}

bool overlaps(Span a, Span b) {
  return a.begin < b.end && b.begin < a.end;
}

/// What is to stand in place of a part of a text.
struct Edit {
  Span place;  ///< empty: it is inserted there
  std::string text;
};

/// The words of a sentence and of its translation, with their links.
struct WordsOfPair {
  const std::vector<Span>&src, &tgt;
  const Links& links;

  /// Returns the longest run of target words that are linked with a source word in `span`; an empty span if there is none.
  Span linked_with(Span span) const {
    std::vector<bool> is_linked(tgt.size());
    for (const auto& [from, to] : links)
      if (static_cast<size_t>(from) < src.size() && static_cast<size_t>(to) < tgt.size() && overlaps(src[static_cast<size_t>(from)], span))
        is_linked[static_cast<size_t>(to)] = true;
    size_t best = 0, longest = 0;
    for (size_t begin = 0; begin < is_linked.size(); ++begin) {
      size_t end = begin;
      while (end < is_linked.size() && is_linked[end]) ++end;
      if (end - begin > longest) {
        best = begin;
        longest = end - begin;
      }
      begin = end;
    }
    return longest > 0 ? Span{tgt[best].begin, tgt[best + longest - 1].end} : Span{};
  }

  /// Returns the edit that puts a word of its own where a source word in `span` would stand: behind what the word before it is linked with,
  /// or before what the next one is, the nearest that has links; without any at the end.
  Edit insertion(const std::string& text, Span span, const std::string& word) const {
    const auto is_in = [&](Span one) { return overlaps(one, span); };
    const auto first = static_cast<size_t>(std::ranges::find_if(src, is_in) - src.begin());
    const size_t last = first + static_cast<size_t>(std::ranges::count_if(src, is_in)) - 1;
    size_t at = core_of(text, {0, text.size()}).end;
    for (size_t distance = 1; distance < src.size(); ++distance) {
      const Span before = first >= distance ? core_of(text, linked_with(src[first - distance])) : Span{};
      const Span behind = last + distance < src.size() ? core_of(text, linked_with(src[last + distance])) : Span{};
      if (before.size() == 0 && behind.size() == 0) continue;
      at = before.size() > 0 ? before.end : behind.begin;
      break;
    }
    const bool needs_space = at > 0 && !is_space(character_before(text, at));
    const bool needs_another = at < text.size() && u_isalnum(character_at(text, at)) != 0;
    return {{at, at}, (needs_space ? " " : "") + word + (needs_another ? " " : "")};
  }
};

/// Returns a translation with edits, each of the source words in the span of the same number, which become one word. Edits do not overlap,
/// but for insertions.
LinkedText with_edits(const LinkedText& translation, const WordsOfPair& words, const std::vector<Span>& src_spans,
                      std::vector<Edit> edits) {
  std::vector<size_t> order(edits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (Edit& edit : edits)  // an insertion within another edit's place comes behind that
    for (const Edit& other : edits)
      if (edit.place.size() == 0 && edit.place.begin > other.place.begin && edit.place.begin < other.place.end)
        edit.place = {other.place.end, other.place.end};
  std::ranges::stable_sort(order, {}, [&](size_t i) { return std::pair(edits[i].place.begin, edits[i].place.end); });
  std::string text;
  std::vector<size_t> new_begins(words.tgt.size());  // of the old words
  std::vector<size_t> edit_begins(edits.size());
  size_t done = 0, word = 0;
  const auto copy_to = [&](size_t end) {
    for (; word < words.tgt.size() && words.tgt[word].begin < end; ++word)
      new_begins[word] = text.size() + (words.tgt[word].begin > done ? words.tgt[word].begin - done : 0);
    if (end > done) text.append(translation.text, done, end - done);
    done = std::max(done, end);
  };
  for (const size_t i : order) {
    copy_to(edits[i].place.begin);
    edit_begins[i] = text.size() + (edits[i].text.starts_with(' ') ? 1 : 0);
    for (; word < words.tgt.size() && words.tgt[word].begin < edits[i].place.end; ++word) new_begins[word] = edit_begins[i];
    text += edits[i].text;
    done = std::max(done, edits[i].place.end);
  }
  copy_to(translation.text.size());
  const std::vector<Span> now = words_of(text);
  const auto number_at = [&](size_t place) {
    return static_cast<int32_t>(std::ranges::find_if(now, [place](Span one) { return place < one.end; }) - now.begin());
  };
  const std::vector<int32_t> src_numbers = merged_words(words.src, src_spans);
  LinkedText edited{std::move(text)};
  for (const auto& [from, to] : words.links)
    if (static_cast<size_t>(from) < words.src.size() && static_cast<size_t>(to) < words.tgt.size())
      edited.links.emplace_back(src_numbers[static_cast<size_t>(from)], number_at(new_begins[static_cast<size_t>(to)]));
  for (size_t i = 0; i < edits.size(); ++i)
    for (size_t s = 0; s < words.src.size(); ++s)
      if (overlaps(words.src[s], src_spans[i])) edited.links.emplace_back(src_numbers[s], number_at(edit_begins[i]));
  std::ranges::sort(edited.links);
  edited.links.erase(std::unique(edited.links.begin(), edited.links.end()), edited.links.end());
  return edited;
}

}  // namespace

std::vector<TextPart> parts_of(std::string_view text) {
  std::vector<TextPart> parts;
  size_t end = 0;
  for (const Span kept : kept_parts(text)) {
    if (kept.begin > end) parts.push_back({std::string(text.substr(end, kept.begin - end)), false});
    parts.push_back({std::string(kept.of(text)), true});
    end = kept.end;
  }
  if (end < text.size()) parts.push_back({std::string(text.substr(end)), false});
  return parts;
}

StandIns::StandIns(const std::vector<TextPart>& parts) {
  for (const TextPart& part : parts) {
    if (part.is_kept) continue;
    for (size_t at = 0; (at = part.text.find('X', at)) != std::string::npos; ++at)
      if (const auto [end, number] = numbered_word(part.text, at); end > at) first_number_ = std::max(first_number_, number + 1);
  }
  for (const TextPart& part : parts) {
    const size_t begin = text_.size();
    text_ += part.is_kept ? name(kept_.size()) : part.text;
    if (!part.is_kept) {
      text_.erase(std::remove(text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.end(), kMark), text_.end());
      part_borders_.push_back(text_.size());
      continue;
    }
    part_borders_.push_back(text_.size());
    places_.push_back({begin, text_.size()});
    kept_.push_back(part);
  }
}

std::optional<LinkedText> StandIns::marked(std::string_view source, const LinkedText& translation, size_t first, size_t count) const {
  std::string given = translation.text, text;
  std::erase(given, kMark);
  if (are_all_terms(first, count)) return LinkedText{std::move(given), translation.links};
  std::vector<bool> is_there(count);
  for (size_t at = 0; at < given.size();) {
    const auto [end, number] = given[at] == 'X' ? numbered_word(given, at) : std::pair(at, size_t{0});
    if (end == at || number < first_number_ || number >= first_number_ + kept_.size() || kept_[number - first_number_].is_term()) {
      text += given[at++];
      continue;
    }
    const size_t index = number - first_number_ - first;  // of those of this sentence; beyond `count` if it is none of them
    if (index >= count || is_there[index]) return {};
    is_there[index] = true;
    text += mark(first + index);
    at = end;
  }
  const std::vector<Span> src_words = words_of(source);
  for (size_t i = 0; i < count; ++i) {
    if (is_there[i] || kept_[first + i].is_term()) continue;
    const auto src = std::ranges::find_if(src_words, [&](Span word) { return core_of(source, word).of(source) == name(first + i); });
    const std::vector<Span> tgt_words = words_of(text);
    size_t tgt = kNone;
    for (const auto& [from, to] : translation.links) {
      if (from != src - src_words.begin() || static_cast<size_t>(to) >= tgt_words.size()) continue;
      if (tgt != kNone) return {};
      tgt = static_cast<size_t>(to);
    }
    if (tgt == kNone || tgt_words[tgt].of(text).find(kMark) != std::string_view::npos) return {};
    const Span core = core_of(text, tgt_words[tgt]);
    if (core.size() == 0) return {};
    text.replace(core.begin, core.size(), mark(first + i));
  }
  return LinkedText{std::move(text), translation.links};
}

/// Reads the mark at `at`; sets its end. kNone if there is none.
size_t StandIns::index_at(std::string_view text, size_t at, size_t& end) const {
  size_t index = kNone;
  const char* const digits = text.data() + at + 1;
  const auto [rest, error] = std::from_chars(digits, text.data() + text.size(), index);
  end = static_cast<size_t>(rest - text.data()) + 1;
  return error == std::errc() && index < kept_.size() && end <= text.size() ? index : kNone;
}

/// Returns a text with kept(index) in place of the mark of each kept part.
template <class Kept>
std::string StandIns::with_kept(std::string_view marked, std::string (*escape)(std::string_view), const Kept& kept) const {
  std::string text;
  for (size_t at = 0; at < marked.size();) {
    const size_t mark = std::min(marked.find(kMark, at), marked.size());
    text += escape != nullptr ? escape(marked.substr(at, mark - at)) : marked.substr(at, mark - at);
    at = mark;
    if (at == marked.size()) break;
    size_t end = at + 1;
    const size_t index = index_at(marked, at, end);
    if (index != kNone) text += kept(index);
    at = index != kNone ? end : at + 1;
  }
  return text;
}

std::string StandIns::restored(std::string_view marked, std::string (*escape)(std::string_view)) const {
  return with_kept(marked, escape, [this](size_t index) { return kept_[index].is_term() ? kept_[index].term : kept_[index].text; });
}

std::string StandIns::restored_source(std::string_view marked) const {
  return with_kept(marked, nullptr, [this](size_t index) { return kept_[index].text; });
}

LinkedText StandIns::restored(const std::string& marked_source, const LinkedText& marked) const {
  const std::vector<int32_t> src_before = words_before(marked_source, [this](std::string_view word) { return restored_source(word); });
  const std::vector<int32_t> tgt_before = words_before(marked.text, [this](std::string_view word) { return restored(word); });
  LinkedText whole{restored(std::string_view(marked.text))};
  whole.links.reserve(marked.links.size());
  for (const auto& [from, to] : marked.links)
    if (static_cast<size_t>(from) < src_before.size() && static_cast<size_t>(to) < tgt_before.size())
      whole.links.emplace_back(src_before[static_cast<size_t>(from)], tgt_before[static_cast<size_t>(to)]);
  return whole;
}

bool StandIns::has_terms(size_t first, size_t count) const {
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(first);
  return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](const TextPart& part) { return part.is_term(); });
}

bool StandIns::are_all_terms(size_t first, size_t count) const {
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(first);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](const TextPart& part) { return part.is_term(); });
}

std::string StandIns::with_terms(Span part) const {
  return with_kept(marked(part), nullptr, [this](size_t index) { return kept_[index].is_term() ? kept_[index].text : name(index); });
}

LinkedText StandIns::marked_terms(Span part, const LinkedText& translation, size_t first, size_t count) const {
  const std::string source = with_terms(part), &text = translation.text;
  const std::vector<Span> src_words = words_of(source), tgt_words = words_of(text);
  const WordsOfPair words = {src_words, tgt_words, translation.links};
  std::vector<Span> src_spans;
  std::vector<Edit> edits;
  const auto is_free = [&](Span span) { return std::ranges::none_of(edits, [&](const Edit& edit) { return overlaps(span, edit.place); }); };
  std::vector<size_t> left;  // terms that are not there yet, of src_spans
  for (size_t i = 0, grown = 0; i < count; ++i) {
    const TextPart& kept = kept_[first + i];
    const size_t begin = places_[first + i].begin - part.begin + grown;
    if (!kept.is_term()) continue;
    src_spans.push_back({begin, begin + kept.text.size()});
    grown += kept.text.size() - places_[first + i].size();
    Span found = occurrence(text, kept.term, 0);
    while (found.size() > 0 && !is_free(found)) found = occurrence(text, kept.term, found.end);
    edits.push_back({found, mark(first + i)});
    if (found.size() == 0) left.push_back(src_spans.size() - 1);
  }
  for (const size_t i : left) {
    const Span core = core_of(text, words.linked_with(src_spans[i]));
    if (core.size() > 0 && is_free(core))
      edits[i].place = core;
    else
      edits[i] = words.insertion(text, src_spans[i], edits[i].text);
  }
  return with_edits(translation, words, src_spans, std::move(edits));
}

std::string StandIns::marked(Span part) const {
  std::string text;
  size_t at = part.begin;
  const auto first = std::ranges::lower_bound(places_, part.begin, {}, &Span::begin);
  for (auto i = static_cast<size_t>(first - places_.begin()); i < places_.size() && places_[i].end <= part.end; ++i) {
    text += Span{at, places_[i].begin}.of(text_);
    text += mark(i);
    at = places_[i].end;
  }
  text += Span{at, part.end}.of(text_);
  return text;
}

}  // namespace lacuna::document

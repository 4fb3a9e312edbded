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

/// Returns the longest run of target words that are linked with a source word in `src`; an empty span if there is none.
Span linked_words(const std::vector<Span>& src_words, Span src, const std::vector<Span>& tgt_words, const Links& links) {
  std::vector<bool> is_linked(tgt_words.size());
  for (const auto& [from, to] : links)
    if (static_cast<size_t>(from) < src_words.size() && static_cast<size_t>(to) < tgt_words.size() &&
        overlaps(src_words[static_cast<size_t>(from)], src))
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
  return longest > 0 ? Span{tgt_words[best].begin, tgt_words[best + longest - 1].end} : Span{};
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
  std::vector<bool> is_there(count);
  for (size_t at = 0; at < given.size();) {
    const auto [end, number] = given[at] == 'X' ? numbered_word(given, at) : std::pair(at, size_t{0});
    if (end == at || number < first_number_ || number >= first_number_ + kept_.size()) {
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
    if (is_there[i]) continue;
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

/// Returns a text with kept(part) in place of the mark of each kept part.
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
    if (index != kNone) text += kept(kept_[index]);
    at = index != kNone ? end : at + 1;
  }
  return text;
}

std::string StandIns::restored(std::string_view marked, std::string (*escape)(std::string_view)) const {
  return with_kept(marked, escape, [](const TextPart& part) { return part.is_term() ? part.term : part.text; });
}

std::string StandIns::restored_source(std::string_view marked) const {
  return with_kept(marked, nullptr, [](const TextPart& part) { return part.text; });
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

bool StandIns::are_terms(size_t first, size_t count) const {
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(first);
  return count > 0 && std::all_of(begin, begin + static_cast<std::ptrdiff_t>(count), [](const TextPart& part) { return part.is_term(); });
}

std::string StandIns::with_terms(Span part) const {
  return with_kept(marked(part), nullptr, [](const TextPart& kept) { return kept.text; });
}

std::optional<LinkedText> StandIns::marked_terms(Span part, const LinkedText& translation, size_t first, size_t count) const {
  const std::string source = with_terms(part);
  std::string text = translation.text;
  if (text.find(kMark) != std::string::npos) return {};
  std::vector<Span> src_spans;  // of the terms in the source
  src_spans.reserve(count);
  for (size_t i = 0, grown = 0; i < count; ++i) {
    const size_t begin = places_[first + i].begin - part.begin + grown, size = kept_[first + i].text.size();
    src_spans.push_back({begin, begin + size});
    grown += size - places_[first + i].size();
  }
  const std::vector<Span> src_words = words_of(source), tgt_words = words_of(text);
  std::vector<Span> tgt_spans(count);
  const auto is_free = [&](Span span) { return std::ranges::none_of(tgt_spans, [&](Span taken) { return overlaps(span, taken); }); };
  for (size_t i = 0; i < count; ++i)  // terms that are there already, in order
    for (Span found = occurrence(text, kept_[first + i].term, 0); found.size() > 0 && tgt_spans[i].size() == 0;
         found = occurrence(text, kept_[first + i].term, found.end))
      if (is_free(found)) tgt_spans[i] = found;
  for (size_t i = 0; i < count; ++i) {
    if (tgt_spans[i].size() > 0) continue;
    const Span words = linked_words(src_words, src_spans[i], tgt_words, translation.links);
    const Span core = core_of(text, words);
    if (core.size() == 0 || !is_free(core)) return {};
    tgt_spans[i] = core;
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return tgt_spans[i].begin; });
  std::vector<Span> sorted;
  sorted.reserve(count);
  for (const size_t i : order) sorted.push_back(tgt_spans[i]);
  const std::vector<int32_t> src_numbers = merged_words(src_words, src_spans), tgt_numbers = merged_words(tgt_words, sorted);
  for (size_t n = count; n-- > 0;) text.replace(sorted[n].begin, sorted[n].size(), mark(first + order[n]));
  LinkedText marked{std::move(text)};
  for (const auto& [from, to] : translation.links)
    if (static_cast<size_t>(from) < src_numbers.size() && static_cast<size_t>(to) < tgt_numbers.size())
      marked.links.emplace_back(src_numbers[static_cast<size_t>(from)], tgt_numbers[static_cast<size_t>(to)]);
  std::ranges::sort(marked.links);
  marked.links.erase(std::unique(marked.links.begin(), marked.links.end()), marked.links.end());
  return marked;
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

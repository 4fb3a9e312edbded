#include "document/terms.h"

#include <algorithm>

#include "base/line_reader.h"
#include "document/characters.h"

namespace lacuna::document {
namespace {

constexpr char kWrong[] = "with wrong terms";

/// Returns the text with each character in small letters whose small letter has as many bytes.
std::string folded(std::string_view text) {
  std::string small;
  small.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = next_character(text, at);
    uint8_t bytes[U8_MAX_LENGTH];
    size_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, u_tolower(character_at(text, at)));
    if (length == end - at)
      small.append(reinterpret_cast<const char*>(bytes), length);
    else
      small += text.substr(at, end - at);
    at = end;
  }
  return small;
}

/// Returns true for letters and digits of languages that put spaces between words.
bool is_of_word(UChar32 character) {
  return u_isalnum(character) != 0 && u_getIntPropertyValue(character, UCHAR_EAST_ASIAN_WIDTH) != U_EA_WIDE;
}

/// Returns true if no word goes on through this place.
bool is_border(std::string_view text, size_t at) {
  return at == 0 || at == text.size() || !is_of_word(character_before(text, at)) || !is_of_word(character_at(text, at));
}

std::string shown(const std::string& term) {
  constexpr size_t kShown = 60;
  return "\"" + (term.size() > kShown ? term.substr(0, kShown) + "..." : term) + "\"";
}

/// Throws LineError for a side of a term that cannot be one.
void check(const std::string& term, const char* side, const std::string& place) {
  const auto refuse = [&](const std::string& what) {
    throw LineError(kWrong, place + ": the " + side + " of a term " + what + "; expected words of one line of text");
  };
  if (term.empty() || trimmed(term, {0, term.size()}) != Span{0, term.size()}) refuse("is empty, or has spaces around it: " + shown(term));
  if (term.size() > Terms::kLongest)
    refuse("has " + std::to_string(term.size()) + " bytes, and at most " + std::to_string(Terms::kLongest) + " are allowed");
  if (std::ranges::any_of(term, [](unsigned char c) { return c < ' ' || c == 0x7F; })) refuse("holds a control character");
}

}  // namespace

void Terms::add(const std::string& source, const std::string& target, const std::string& place) {
  check(source, "source", place);
  check(target, "target", place);
  const auto [found, is_new] = terms_.try_emplace(source, Term{source, target, place});
  if (!is_new && found->second.target != target)
    throw LineError(kWrong, place + ": the term " + shown(source) + " is " + shown(target) + " here and " + shown(found->second.target) +
                                " in " + found->second.place + "; expected one translation: remove one of the two");
  if (terms_.size() > kMost) throw LineError(kWrong, place + ": there are more than " + std::to_string(kMost) + " terms; expected fewer");
  lengths_.insert(source.size());
}

/// Returns the longest term that begins at `at`, and where it ends; null if none does.
const Terms::Term* Terms::find(std::string_view text, std::string_view folded, size_t at, size_t& end) const {
  for (const size_t length : lengths_) {
    end = at + length;
    if (end > text.size() || !is_border(text, end)) continue;
    const auto exact = terms_.find(std::string(text.substr(at, length)));
    if (exact != terms_.end()) return &exact->second;
    const auto small = terms_.find(std::string(folded.substr(at, length)));
    if (small != terms_.end()) return &small->second;
  }
  return nullptr;
}

std::vector<TextPart> Terms::cut(std::vector<TextPart> parts) const {
  if (is_empty()) return parts;
  std::vector<TextPart> cut;
  for (TextPart& part : parts) {
    if (part.is_kept) {
      cut.push_back(std::move(part));
      continue;
    }
    const std::string& text = part.text;
    const std::string small = folded(text);
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      size_t end = 0;
      const Term* const term = is_border(text, at) ? find(text, small, at, end) : nullptr;
      if (term == nullptr) {
        at = next_character(text, at);
        continue;
      }
      if (at > done) cut.push_back({text.substr(done, at - done)});
      cut.push_back({text.substr(at, end - at), true, term->target});
      at = done = end;
    }
    if (done < text.size()) cut.push_back({text.substr(done)});
  }
  return cut;
}

Terms read_terms(const std::string& file) {
  Terms terms;
  LineReader reader(file);
  for (std::string line; reader.next_clean(line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto tabs = std::ranges::count(line, '\t');
    if (tabs != 1)
      throw LineError(kWrong, reader.place() + ": the line has " + std::to_string(tabs + 1) + (tabs == 0 ? " column" : " columns") +
                                  "; expected two: the source term, a tab, and its translation");
    const size_t tab = line.find('\t');
    terms.add(line.substr(0, tab), line.substr(tab + 1), reader.place());
  }
  if (terms.is_empty()) throw DataError(file + ": there is no term; expected lines of a source term, a tab, and its translation");
  return terms;
}

}  // namespace lacuna::document

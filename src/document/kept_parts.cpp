#include "document/kept_parts.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "document/characters.h"

namespace lacuna::document {
namespace {

constexpr size_t kLongestName = 200;  // of a placeholder

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_ascii_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
}

bool is_of_name(char c) {
  return is_ascii_alnum(c) || std::string_view("_.:!-").find(c) != std::string_view::npos;
}

/// Finds kept parts one by one. Each of its functions returns the end of the part that begins at `at`, or `at` if none does.
class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {}

  std::vector<Span> parts() && {
    for (size_t at = 0; (at = text_.find_first_of("`{$%@<hHfFwWmM", at)) != std::string_view::npos;) {
      const Span part = text_[at] == '@' ? mail_around(at) : Span{at, end_of_part(at)};
      if (part.size() > 0) parts_.push_back(part);
      at = part.size() > 0 ? part.end : at + 1;
    }
    return std::move(parts_);
  }

 private:
  char at(size_t place) const { return place < text_.size() ? text_[place] : '\0'; }
  bool has(size_t place, std::string_view what) const { return text_.substr(std::min(place, text_.size())).starts_with(what); }

  size_t end_of_part(size_t at) {
    switch (text_[at]) {
      case '`':
        return end_of_code(at);
      case '{':
        return has(at, "{{") ? end_of_braces(at, "}}", 2) : end_of_name(at, '}', 1);
      case '$':
        return has(at, "${") ? end_of_braces(at, "}", 2) : at;
      case '<':
        return end_of_time(at);
      case '%':
        return end_of_percent(at);
      default:
        return end_of_address(at);
    }
  }

  /// Code between runs of one to three backquotes.
  size_t end_of_code(size_t at) {
    size_t content = at;
    while (content < text_.size() && text_[content] == '`') ++content;
    const size_t marks = content - at;
    if (marks >= has_no_end_.size() || has_no_end_[marks]) return at;
    for (size_t place = content; (place = text_.find('`', place)) != std::string_view::npos;) {
      const size_t end = std::min(text_.find_first_not_of('`', place), text_.size());
      if (end - place == marks) return end;
      place = end;
    }
    has_no_end_[marks] = true;
    return at;
  }

  /// Something in braces, without braces and line breaks.
  size_t end_of_braces(size_t at, std::string_view close, size_t open_size) const {
    const size_t end = text_.substr(at, kLongestName).find_first_of("{}\n", open_size);
    return end == std::string_view::npos || end == open_size || !has(at + end, close) ? at : at + end + close.size();
  }

  /// A name up to `close`.
  size_t end_of_name(size_t at, char close, size_t open_size) const {
    size_t end = at + open_size;
    while (end < text_.size() && end - at < kLongestName && is_of_name(text_[end])) ++end;
    return end > at + open_size && this->at(end) == close ? end + 1 : at;
  }

  /// A time within a cue of WebVTT: <00:19.500>.
  size_t end_of_time(size_t at) const {
    const size_t end = std::min(text_.find_first_not_of("0123456789:.", at + 1), text_.size());
    return end > at + 1 && this->at(end) == '>' && text_.substr(at, end - at).find(':') != std::string_view::npos ? end + 1 : at;
  }

  size_t end_of_percent(size_t at) const {
    if (has(at, "%%")) return at + 2;
    if (has(at, "%{")) return end_of_braces(at, "}", 2);
    if (at > 0 && is_ascii_digit(text_[at - 1])) return at;  // per cent
    size_t end = at + 1;
    while (std::isupper(static_cast<unsigned char>(this->at(end))) != 0 || is_ascii_digit(this->at(end)) || this->at(end) == '_') ++end;
    if (end > at + 2 && this->at(end) == '%') return end + 1;
    return end_of_printf(at);
  }

  /// A conversion of printf, also of Python (%(name)s) and Apple (%1$@).
  size_t end_of_printf(size_t at) const {
    const auto skipped = [this](size_t place, std::string_view characters) {
      return std::min(text_.find_first_not_of(characters, place), text_.size());
    };
    constexpr std::string_view kDigits = "0123456789";
    size_t place = at + 1;
    if (this->at(place) == '(') {
      place = end_of_name(place, ')', 1);
      if (place == at + 1) return at;
    } else if (const size_t end = skipped(place, kDigits); end > place && this->at(end) == '$') {
      place = end + 1;
    }
    place = skipped(skipped(place, "-+#0'"), kDigits);
    if (this->at(place) == '.') place = skipped(place + 1, kDigits);
    place = skipped(place, "hlLqjzt");
    const bool is_conversion = std::string_view("sdiuxXofFeEgGcp@").find(this->at(place)) != std::string_view::npos && place < text_.size();
    return is_conversion && !is_ascii_alnum(this->at(place + 1)) ? place + 1 : at;
  }

  size_t end_of_address(size_t at) const {
    if (at > 0 && is_of_word(character_before(text_, at))) return at;
    std::string head(text_.substr(at, 8));
    std::ranges::transform(head, head.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    size_t size = 0;
    for (const std::string_view scheme : {"http://", "https://", "ftp://", "www.", "mailto:"})
      if (head.starts_with(scheme)) size = scheme.size();
    if (size == 0) return at;
    size_t end = at + size;
    while (end < text_.size() && is_of_address(character_at(text_, end))) end = next_character(text_, end);
    end = without_punctuation({at, end});
    return end > at + size ? end : at;
  }

  static bool is_of_address(UChar32 character) {
    if (character < 0x80)
      return character > ' ' && std::string_view("<>\"`{}|\\^").find(static_cast<char>(character)) == std::string_view::npos;
    return is_of_word(character);
  }

  /// Returns true for letters and digits, but for those of languages that write words without spaces.
  static bool is_of_word(UChar32 character) {
    return u_isalnum(character) != 0 && u_getIntPropertyValue(character, UCHAR_EAST_ASIAN_WIDTH) != U_EA_WIDE;
  }

  /// Returns the end of an address without the punctuation that belongs to the sentence, such as a bracket that opened before it.
  size_t without_punctuation(Span address) const {
    const std::string_view all = address.of(text_);
    auto round = std::ranges::count(all, ')') - std::ranges::count(all, '('),
         square = std::ranges::count(all, ']') - std::ranges::count(all, '[');
    for (; address.size() > 0; --address.end) {
      const char last = text_[address.end - 1];
      if (last == ')' || last == ']') {
        if ((last == ')' ? round : square)-- <= 0) break;
      } else if (std::string_view(".,;:!?'*_").find(last) == std::string_view::npos) {
        break;
      }
    }
    return address.end;
  }

  /// An e-mail address by its @; an empty span if there is none.
  Span mail_around(size_t sign) const {
    const size_t first = parts_.empty() ? 0 : parts_.back().end;
    Span mail{sign, sign + 1};
    const auto is_of_local_part = [](char c) { return is_ascii_alnum(c) || std::string_view("._%+-").find(c) != std::string_view::npos; };
    while (mail.begin > first && is_of_local_part(text_[mail.begin - 1])) --mail.begin;
    size_t dots = 0, label = 0;
    for (size_t place = sign + 1; place < text_.size(); ++place) {
      if (is_ascii_alnum(text_[place]) || (text_[place] == '-' && label > 0)) {
        mail.end = place + 1;
        ++label;
      } else if (text_[place] == '.' && label > 0 && is_ascii_alnum(at(place + 1))) {
        ++dots;
        label = 0;
      } else {
        break;
      }
    }
    return mail.begin == sign || dots == 0 ? Span{sign, sign} : mail;
  }

  std::string_view text_;
  std::array<bool, 4> has_no_end_ = {};  // runs of so many backquotes that no other follows
  std::vector<Span> parts_;
};

}  // namespace

std::vector<Span> kept_parts(std::string_view text) {
  return Finder(text).parts();
}

}  // namespace lacuna::document

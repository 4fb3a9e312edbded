#include "document/html_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace lacuna::document {
namespace {

constexpr std::string_view kHtmlSpaces = " \t\n\r\f";

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

bool is_raw(std::string_view element) {
  constexpr std::array<std::string_view, 9> kRaw = {"script",  "style",    "textarea", "xmp",     "iframe",
                                                    "noembed", "noframes", "noscript", "template"};
  return std::ranges::find(kRaw, element) != kRaw.end();
}

bool is_void(std::string_view element) {
  constexpr std::array<std::string_view, 14> kVoid = {"area",  "base", "br",   "col",   "embed",  "hr",    "img",
                                                      "input", "link", "meta", "param", "source", "track", "wbr"};
  return std::ranges::find(kVoid, element) != kVoid.end();
}

class HtmlReader {
 public:
  explicit HtmlReader(std::string_view html) : html_(html) {}

  std::vector<HtmlToken> tokens() && {
    while (at_ < html_.size()) {
      const size_t text = at_;
      while (at_ < html_.size() && !is_markup(at_)) at_ = std::min(html_.find('<', at_ + 1), html_.size());
      if (at_ > text) tokens_.push_back({HtmlToken::Kind::kText, {text, at_}});
      if (at_ < html_.size()) read_markup();
    }
    match();
    return std::move(tokens_);
  }

 private:
  char at(size_t place) const { return place < html_.size() ? html_[place] : '\0'; }

  bool is_markup(size_t place) const {
    if (html_[place] != '<') return false;
    const char next = at(place + 1);
    return is_ascii_letter(next) || next == '!' || next == '?' || next == '/';
  }

  void read_markup() {
    const size_t begin = at_;
    const bool is_end = at(at_ + 1) == '/';
    if (is_ascii_letter(at(begin + (is_end ? 2 : 1)))) return read_tag(is_end);
    const bool is_comment = html_.substr(begin).starts_with("<!--");
    const size_t end = is_comment ? html_.find("-->", begin + 2) : html_.find('>', begin);
    at_ = end == std::string_view::npos ? html_.size() : end + (is_comment ? 3 : 1);
    tokens_.push_back({HtmlToken::Kind::kOther, {begin, at_}});
  }

  void read_tag(bool is_end) {
    HtmlToken tag{is_end ? HtmlToken::Kind::kEnd : HtmlToken::Kind::kStart, {at_, at_}};
    const size_t name = at_ + (is_end ? 2 : 1);
    size_t place = std::min(html_.find_first_of(" \t\n\r\f/>", name), html_.size());
    tag.name = in_small_letters(html_.substr(name, place - name));
    tag.name.resize(std::min(tag.name.find('.'), tag.name.size()));  // classes in WebVTT: <c.loud>
    while (place < html_.size() && html_[place] != '>') place = read_attribute(place, tag);
    if (place >= html_.size()) tag.kind = HtmlToken::Kind::kOther;  // it has no end
    at_ = std::min(place + 1, html_.size());
    tag.place.end = at_;
    const bool has_raw_content = tag.kind == HtmlToken::Kind::kStart && is_raw(tag.name);
    tokens_.push_back(std::move(tag));
    if (has_raw_content) read_raw_content();
  }

  /// Reads an attribute, or the space or slash that stands before one; returns its end.
  size_t read_attribute(size_t place, HtmlToken& tag) const {
    if (html_[place] == '/' || kHtmlSpaces.find(html_[place]) != std::string_view::npos) return place + 1;
    const size_t name_end = std::min(html_.find_first_of(" \t\n\r\f/>=", place + 1), html_.size());
    const std::string_view name = html_.substr(place, name_end - place);
    const size_t sign = std::min(html_.find_first_not_of(kHtmlSpaces, name_end), html_.size());
    if (at(sign) != '=') return name_end;
    size_t begin = std::min(html_.find_first_not_of(kHtmlSpaces, sign + 1), html_.size()), end = begin;
    if (at(begin) == '"' || at(begin) == '\'') {
      end = std::min(html_.find(html_[begin], begin + 1), html_.size());
      note_attribute(name, html_.substr(std::min(begin + 1, end), end - std::min(begin + 1, end)), tag);
      return std::min(end + 1, html_.size());
    }
    end = std::min(html_.find_first_of(" \t\n\r\f>", begin), html_.size());
    note_attribute(name, html_.substr(begin, end - begin), tag);
    return end;
  }

  static void note_attribute(std::string_view name, std::string_view value, HtmlToken& tag) {
    constexpr size_t kLongest = 1000;  // of a list of classes that is looked at
    if (in_small_letters(name.substr(0, 16)) == "translate" && in_small_letters(value.substr(0, 3)) == "no") tag.is_not_translated = true;
    if (in_small_letters(name.substr(0, 16)) == "class" && value.substr(0, kLongest).find("notranslate") != std::string_view::npos)
      tag.is_not_translated = true;
  }

  /// Reads up to the end tag of the element that was begun.
  void read_raw_content() {
    const size_t begin = at_;
    const std::string& name = tokens_.back().name;
    for (; at_ < html_.size(); ++at_) {
      at_ = std::min(html_.find("</", at_), html_.size());
      if (at_ == html_.size()) break;
      if (in_small_letters(html_.substr(std::min(at_ + 2, html_.size()), name.size())) == name &&
          !is_ascii_letter(at(at_ + 2 + name.size())))
        break;
    }
    if (at_ > begin) tokens_.push_back({HtmlToken::Kind::kOther, {begin, at_}});
  }

  /// Finds the partners of tags: an end tag ends the element of its name that was begun last.
  void match() {
    std::map<std::string_view, std::vector<size_t>> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      HtmlToken& token = tokens_[i];
      if (token.kind == HtmlToken::Kind::kStart && !is_void(token.name)) open[token.name].push_back(i);
      if (token.kind != HtmlToken::Kind::kEnd || open[token.name].empty()) continue;
      token.partner = open[token.name].back();
      tokens_[token.partner].partner = i;
      open[token.name].pop_back();
    }
  }

  std::string_view html_;
  size_t at_ = 0;
  std::vector<HtmlToken> tokens_;
};

const std::map<std::string_view, char32_t>& references() {
  static const auto kReferences = [] {
    std::map<std::string_view, char32_t> map = {
        {"amp", '&'},      {"lt", '<'},       {"gt", '>'},       {"quot", '"'},     {"apos", '\''},     {"hellip", 0x2026},
        {"ndash", 0x2013}, {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019}, {"sbquo", 0x201A},  {"ldquo", 0x201C},
        {"rdquo", 0x201D}, {"bdquo", 0x201E}, {"bull", 0x2022},  {"euro", 0x20AC},  {"trade", 0x2122},  {"OElig", 0x152},
        {"oelig", 0x153},  {"Scaron", 0x160}, {"scaron", 0x161}, {"Yuml", 0x178},   {"lsaquo", 0x2039}, {"rsaquo", 0x203A},
        {"minus", 0x2212}, {"prime", 0x2032}, {"Prime", 0x2033},
    };
    constexpr std::array<std::string_view, 96> kLatin1 = {
        "nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",    "copy",   "ordf",   "laquo",
        "not",    "shy",    "reg",    "macr",   "deg",    "plusmn", "sup2",   "sup3",   "acute",  "micro",  "para",   "middot",
        "cedil",  "sup1",   "ordm",   "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc",  "Atilde",
        "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",   "Igrave", "Iacute", "Icirc",  "Iuml",
        "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde", "Ouml",   "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",
        "Uuml",   "Yacute", "THORN",  "szlig",  "agrave", "aacute", "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil",
        "egrave", "eacute", "ecirc",  "euml",   "igrave", "iacute", "icirc",  "iuml",   "eth",    "ntilde", "ograve", "oacute",
        "ocirc",  "otilde", "ouml",   "divide", "oslash", "ugrave", "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"};
    for (size_t i = 0; i < kLatin1.size(); ++i) map[kLatin1[i]] = static_cast<char32_t>(0xA0 + i);
    return map;
  }();
  return kReferences;
}

void append_utf8(std::string& text, char32_t code) {
  const auto add = [&text](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

/// Returns the character of a reference without its & and ;, or 0 if it is none.
char32_t referred_character(std::string_view name) {
  if (!name.starts_with('#')) {
    const auto known = references().find(name);
    return known == references().end() ? 0 : known->second;
  }
  name.remove_prefix(1);
  const bool is_hexadecimal = name.starts_with('x') || name.starts_with('X');
  if (is_hexadecimal) name.remove_prefix(1);
  char32_t code = 0;
  for (const char c : name) {
    const auto character = static_cast<unsigned char>(c);
    if (is_hexadecimal ? std::isxdigit(character) == 0 : std::isdigit(character) == 0) return 0;
    const int digit = std::isdigit(character) != 0 ? c - '0' : std::tolower(character) - 'a' + 10;
    code = std::min<char32_t>(code * (is_hexadecimal ? 16 : 10) + static_cast<char32_t>(digit), 0x110000);
  }
  const bool is_character = code >= 0x20 && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
  return is_character ? code : 0;
}

/// Returns true for the name of a character, or its number, whether it is known or not.
bool is_reference(std::string_view name) {
  return name.size() > 1 && (is_ascii_letter(name[0]) || name[0] == '#') &&
         std::ranges::all_of(name.substr(1), [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

std::vector<HtmlToken> html_tokens(std::string_view html) {
  return HtmlReader(html).tokens();
}

std::vector<TextPart> parts_of_html(std::string_view html) {
  constexpr size_t kLongest = 34;
  std::vector<TextPart> parts;
  std::string text;
  const auto end_text = [&] {
    for (TextPart& part : parts_of(text)) parts.push_back({part.is_kept ? escaped_text(part.text) : std::move(part.text), part.is_kept});
    text.clear();
  };
  for (size_t at = 0; at < html.size();) {
    const size_t sign = std::min(html.find('&', at), html.size());
    text += html.substr(at, sign - at);
    at = sign;
    if (at == html.size()) break;
    const size_t size = html.substr(at + 1, kLongest).find(';');
    const std::string_view name = size == std::string_view::npos ? "" : html.substr(at + 1, size);
    if (const char32_t character = referred_character(name); character != 0) {
      append_utf8(text, character);
      at += size + 2;
    } else if (is_reference(name)) {
      end_text();
      parts.push_back({std::string(html.substr(at, size + 2)), true});
      at += size + 2;
    } else {
      text += html[at++];
    }
  }
  end_text();
  return parts;
}

std::string escaped_text(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else {
      html += c;
    }
  }
  return html;
}

}  // namespace lacuna::document

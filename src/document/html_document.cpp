#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "document/characters.h"
#include "document/document.h"
#include "document/html_tokens.h"
#include "document/tag_projection.h"

namespace lacuna::document {
namespace {

using Kind = HtmlToken::Kind;

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Elements within a sentence, which the translation takes along.
constexpr std::array<std::string_view, 33> kInline = {"a",     "abbr",   "acronym", "b",    "bdi",  "bdo",   "big",   "cite",  "data",
                                                      "del",   "dfn",    "em",      "font", "i",    "ins",   "kbd",   "label", "mark",
                                                      "meter", "q",      "ruby",    "s",    "samp", "span",  "small", "sub",   "sup",
                                                      "time",  "strike", "strong",  "tt",   "u",    "output"};
/// Void elements within a sentence.
constexpr std::array<std::string_view, 5> kInlineVoid = {"img", "input", "wbr", "embed", "area"};
/// Elements whose contents are words of a sentence that stay.
constexpr std::array<std::string_view, 5> kInlineKept = {"code", "kbd", "samp", "var", "tt"};
/// Elements whose contents are no text of a sentence.
constexpr std::array<std::string_view, 17> kObjects = {"script",   "style",  "textarea", "select",   "object", "audio",
                                                       "video",    "canvas", "svg",      "math",     "iframe", "template",
                                                       "noscript", "xmp",    "noembed",  "noframes", "map"};

/// A token of a sentence: an element that is kept whole may be several.
struct Item {
  enum class Role : uint8_t { kText, kOpen, kClose, kPoint, kKept };
  Role role;
  Span place;
  size_t token;
  size_t partner = HtmlToken::kNone;  // the token of the tag that ends or begins the element
};

/// A text with elements in it, all of which begin and end in it.
class HtmlBlock {
 public:
  HtmlBlock(std::string_view html, std::span<const Item> items, const Splitting& how) : paragraph_(read(html, items), how) {
    const std::vector<size_t>& borders = paragraph_.stand_ins().part_borders();
    for (size_t i = 0; i < elements_.size(); ++i) elements_[i].place = {borders[part_ranges_[i].begin], borders[part_ranges_[i].end]};
  }

  void append_to(std::vector<std::string>& sentences) { paragraph_.append_to(sentences); }

  std::string translated(std::span<const LinkedText> translations, std::vector<size_t>& used) const {
    LinkedTextJoiner joiner;
    paragraph_.add_marked_translation(translations, joiner, used);
    const StandIns& stand_ins = paragraph_.stand_ins();
    return with_elements(stand_ins.text(), std::move(joiner).joined(), elements_,
                         [&stand_ins](std::string_view part) { return stand_ins.restored(part, &escaped_text); });
  }

 private:
  /// Returns the parts of the text, and makes the elements.
  std::vector<TextPart> read(std::string_view html, std::span<const Item> items) {
    std::vector<TextPart> parts;
    std::vector<size_t> open;
    bool is_after_space = false;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string_view piece = items[i].place.of(html);
      const size_t parent = open.empty() ? Element::kNone : open.back();
      switch (items[i].role) {
        case Item::Role::kText:
          for (TextPart& part : parts_of_html(piece)) {
            if (!part.is_kept) part.text = collapsed(part.text, is_after_space);
            if (part.is_kept) is_after_space = false;
            parts.push_back(std::move(part));
          }
          break;
        case Item::Role::kKept:
          parts.push_back({std::string(piece), true});
          is_after_space = false;
          break;
        case Item::Role::kOpen:
          open.push_back(elements_.size());
          add_element({.open = std::string(piece), .parent = parent}, parts.size());
          break;
        case Item::Role::kClose:
          elements_[open.back()].close = piece;
          part_ranges_[open.back()].end = parts.size();
          open.pop_back();
          break;
        case Item::Role::kPoint: {
          const bool is_before_space =
              i + 1 < items.size() && items[i + 1].role == Item::Role::kText && is_space(character_at(items[i + 1].place.of(html), 0));
          add_element({.open = std::string(piece), .parent = parent, .is_point = true, .is_spaced = is_after_space && is_before_space},
                      parts.size());
          break;
        }
      }
    }
    return parts;
  }

  void add_element(Element element, size_t part) {
    elements_.push_back(std::move(element));
    part_ranges_.push_back({part, part});
  }

  /// Returns the text with one space for each run of white space, as browsers show it.
  static std::string collapsed(std::string_view text, bool& is_after_space) {
    std::string shown;
    for (const char c : text) {
      const bool is_white = std::string_view(" \t\n\r\f").find(c) != std::string_view::npos;
      if (!is_white || !is_after_space) shown += is_white ? ' ' : c;
      is_after_space = is_white;
    }
    return shown;
  }

  std::vector<Element> elements_;
  std::vector<Span> part_ranges_;  // of each element, as numbers of parts
  Paragraph paragraph_;            // last: reading its text makes the others
};

/// Finds the texts of HTML. Tags that do not nest within a text divide it and stay where they are.
class HtmlDocument : public Document {
 public:
  HtmlDocument(std::string_view html, const Splitting& how) : html_(html), how_(how) {
    const std::vector<HtmlToken> tokens = html_tokens(html_);
    for (size_t i = 0; i < tokens.size(); ++i) i = read(tokens, i);
    end_segment();
  }

  bool needs_links() const override { return true; }
  Translated translated(std::span<const LinkedText> translations) const override {
    Translated whole;
    size_t end = 0;
    for (const auto& [place, block] : blocks_) {
      whole.text.text += Span{end, place.begin}.of(html_);
      whole.text.text += block.translated(translations, whole.used);
      end = place.end;
    }
    whole.text.text += Span{end, html_.size()}.of(html_);
    return whole;
  }

 private:
  static constexpr size_t kDeepest = 64;         // elements within each other in a text; others divide it
  static constexpr int64_t kMostElements = 256;  // of a text; where there are more, all of them divide it

  /// Reads a token, or an element that is kept with all that it has; returns the number of the last token.
  size_t read(const std::vector<HtmlToken>& tokens, size_t i) {
    const HtmlToken& token = tokens[i];
    const bool has_end = token.partner != HtmlToken::kNone && token.partner > i;
    const auto up_to_partner = [&] { return Span{token.place.begin, tokens[token.partner].place.end}; };
    if (token.kind == Kind::kText) {
      segment_.push_back({Item::Role::kText, token.place, i});
    } else if (token.kind == Kind::kOther || is_one_of(kInlineVoid, token.name)) {
      segment_.push_back({Item::Role::kPoint, token.place, i});
    } else if (token.kind == Kind::kStart && has_end && is_one_of(kObjects, token.name)) {
      segment_.push_back({Item::Role::kPoint, up_to_partner(), i});
      return token.partner;
    } else if (token.kind == Kind::kStart && has_end &&
               (token.is_not_translated || is_one_of(kInlineKept, token.name) || token.name == "pre")) {
      const bool is_inline = is_one_of(kInline, token.name) || is_one_of(kInlineKept, token.name);
      if (is_inline) segment_.push_back({Item::Role::kKept, up_to_partner(), i});
      if (!is_inline) end_segment();
      return token.partner;
    } else if (is_one_of(kInline, token.name) && token.partner != HtmlToken::kNone) {
      segment_.push_back({token.kind == Kind::kStart ? Item::Role::kOpen : Item::Role::kClose, token.place, i, token.partner});
    } else {
      end_segment();
    }
    return i;
  }

  /// Makes blocks of what stands between two tags of paragraphs, divided by tags that do not nest.
  void end_segment() {
    const std::vector<bool> divides = dividing_items();
    std::vector<Item> items;
    for (size_t i = 0; i < segment_.size(); ++i) {
      if (divides[i]) {
        add_block(items);
        items.clear();
      } else {
        items.push_back(segment_[i]);
      }
    }
    add_block(items);
    segment_.clear();
  }

  size_t item_of(size_t token) const {
    const auto found = std::ranges::lower_bound(segment_, token, {}, &Item::token);
    return found != segment_.end() && found->token == token ? static_cast<size_t>(found - segment_.begin()) : HtmlToken::kNone;
  }

  /// Returns for each item of the segment whether it is a tag of an element that does not begin and end within one text.
  std::vector<bool> dividing_items() const {
    const auto is_markup = [](const Item& item) { return item.role != Item::Role::kText && item.role != Item::Role::kKept; };
    const bool are_many = std::ranges::count_if(segment_, is_markup) > 2 * kMostElements;
    std::vector<bool> divides(segment_.size());
    if (are_many) {
      for (size_t i = 0; i < segment_.size(); ++i) divides[i] = is_markup(segment_[i]);
      return divides;
    }
    std::vector<size_t> open;
    for (size_t i = 0; i < segment_.size(); ++i) {
      if (segment_[i].role == Item::Role::kOpen) {
        if (item_of(segment_[i].partner) == HtmlToken::kNone || open.size() >= kDeepest) {
          divides[i] = true;
        } else {
          open.push_back(i);
        }
      } else if (segment_[i].role == Item::Role::kClose) {
        close(item_of(segment_[i].partner), i, open, divides);
      }
    }
    for (const size_t i : open) divides[i] = true;
    std::vector<size_t> dividers_before = {0};
    for (const bool one : divides) dividers_before.push_back(dividers_before.back() + (one ? 1 : 0));
    for (size_t i = 0; i < segment_.size(); ++i) {
      if (segment_[i].role != Item::Role::kOpen || divides[i]) continue;
      const size_t end = item_of(segment_[i].partner);
      if (dividers_before[end] > dividers_before[i]) divides[i] = divides[end] = true;
    }
    return divides;
  }

  /// Ends an element; all that began in it and did not end divide the text, and so does it.
  static void close(size_t begin, size_t end, std::vector<size_t>& open, std::vector<bool>& divides) {
    const auto found = begin == HtmlToken::kNone ? open.end() : std::ranges::find(open, begin);
    if (found == open.end()) {
      divides[end] = true;
      return;
    }
    const bool is_last = std::next(found) == open.end();
    if (!is_last || divides[begin])
      for (auto one = found; one != open.end(); ++one) divides[*one] = divides[end] = true;
    open.erase(found);
  }

  void add_block(std::vector<Item> items) {
    if (!has_text(items)) return;
    const auto is_blank = [this](const Item& item) { return item.role == Item::Role::kText && trimmed(html_, item.place).size() == 0; };
    while (is_blank(items.front())) items.erase(items.begin());
    while (is_blank(items.back())) items.pop_back();
    Item &first = items.front(), &last = items.back();
    if (first.role == Item::Role::kText) first.place.begin = trimmed(html_, first.place).begin;
    if (last.role == Item::Role::kText) last.place.end = trimmed(html_, last.place).end;
    HtmlBlock block(html_, items, how_);
    block.append_to(sentences_);
    blocks_.emplace_back(Span{first.place.begin, last.place.end}, std::move(block));
  }

  bool has_text(const std::vector<Item>& items) const {
    return std::ranges::any_of(items, [this](const Item& item) {
      if (item.role != Item::Role::kText) return false;
      const std::string_view text = item.place.of(html_);
      for (size_t at = 0; at < text.size(); at = next_character(text, at))
        if (u_isalnum(character_at(text, at)) != 0) return true;
      return false;
    });
  }

  std::string html_;
  const Splitting& how_;
  std::vector<Item> segment_;
  std::vector<std::pair<Span, HtmlBlock>> blocks_;
};

}  // namespace

std::unique_ptr<Document> html_document(std::string_view html, const Splitting& how) {
  return std::make_unique<HtmlDocument>(html, how);
}

}  // namespace lacuna::document

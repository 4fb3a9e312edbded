#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "document/span.h"
#include "document/stand_ins.h"

namespace lacuna::document {

/// A piece of HTML: text, a tag, or what is neither (comments, declarations, the contents of scripts and styles, a tag without end).
struct HtmlToken {
  enum class Kind : uint8_t { kText, kStart, kEnd, kOther };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  Kind kind = Kind::kText;
  Span place;
  std::string name = {};           ///< of a tag, in small letters
  bool is_not_translated = false;  ///< a start tag with translate="no" or the class "notranslate"
  size_t partner = kNone;          ///< number of the tag that ends or begins the element; none for void elements and unmatched tags
};

/// Returns the tokens of HTML, which together are all of its bytes. They are those of the HTML standard, section 13.2.5, as far as text and
/// tags are told apart; tags are never written anew, so that no tree is needed, and time and memory are linear whatever the input is.
std::vector<HtmlToken> html_tokens(std::string_view html);

/// Returns text of HTML as parts, with character references (&amp;) as characters; those that are not known, and what no translation may
/// change, are kept as HTML.
std::vector<TextPart> parts_of_html(std::string_view html);
/// Returns text as HTML.
std::string escaped_text(std::string_view text);

}  // namespace lacuna::document

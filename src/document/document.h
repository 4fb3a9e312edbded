#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/linked_text.h"
#include "document/paragraph.h"
#include "document/terms.h"

namespace lacuna::document {

/// A text of which sentences are translated and all else stays.
class Document {
 public:
  virtual ~Document() = default;
  /// Returns what is to be translated, in order.
  const std::vector<std::string>& sentences() const { return sentences_; }
  /// Returns true if word links decide about where something in it stands.
  virtual bool needs_links() const = 0;
  /// A document in the other language.
  struct Translated {
    LinkedText text;                ///< with links where words of the text are those of its sentences
    std::vector<size_t> used = {};  ///< numbers of the translations that it is made of
  };
  /// Returns the document from the translations of sentences().
  virtual Translated translated(std::span<const LinkedText> translations) const = 0;

 protected:
  std::vector<std::string> sentences_;
};

/// Returns a plain text, each of whose lines is a paragraph. Without `how` each is one sentence, with nothing that is kept but terms. Those
/// of earlier lists go first.
std::unique_ptr<Document> plain_document(std::string_view text, const Splitting* how, std::span<const Terms* const> terms = {});

/// Returns HTML, a document or a part of one: its texts are translated, with the elements within them around the words that they belong to.
/// All tags stay what they are, and so do comments, scripts, styles, code, and what is marked by translate="no" or the class notranslate.
/// `how` must outlive it.
std::unique_ptr<Document> html_document(std::string_view html, const Splitting& how);

/// Returns subtitles, SRT or WebVTT: their texts are translated, sentences across cues as well, and divided among the cues again. Times,
/// numbers, settings and the number of lines stay. `how` must outlive it.
std::unique_ptr<Document> subtitle_document(std::string_view file, const Splitting& how);

}  // namespace lacuna::document

#include <algorithm>

#include "document/document.h"

namespace lacuna::document {
namespace {

class PlainDocument : public Document {
 public:
  PlainDocument(std::string_view text, const Splitting* how, std::span<const Terms* const> terms) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;  // with its line break, which is white space
      const std::string_view line = text.substr(begin, end - begin);
      std::vector<TextPart> parts = how != nullptr ? parts_of(line) : std::vector<TextPart>{{std::string(line)}};
      for (const Terms* const some : terms) parts = some->cut(std::move(parts));
      lines_.push_back(how != nullptr ? Paragraph(parts, *how) : Paragraph(parts));
      lines_.back().append_to(sentences_);
      begin = end;
    }
  }

  bool needs_links() const override {
    return std::ranges::any_of(lines_, [](const Paragraph& line) { return !line.stand_ins().places().empty(); });
  }
  Translated translated(std::span<const LinkedText> translations) const override {
    Translated whole;
    LinkedTextJoiner joiner;
    for (const Paragraph& line : lines_) line.add_translation(translations, joiner, whole.used);
    whole.text = std::move(joiner).joined();
    return whole;
  }

 private:
  std::vector<Paragraph> lines_;
};

}  // namespace

std::unique_ptr<Document> plain_document(std::string_view text, const Splitting* how, std::span<const Terms* const> terms) {
  return std::make_unique<PlainDocument>(text, how, terms);
}

}  // namespace lacuna::document

#include "serve/text_lines.h"

#include <algorithm>

namespace lacuna::serve {

TextLines::TextLines(const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size()), next = std::min(text.size(), end + 1);
    if (end > begin && text[end - 1] == '\r') --end;
    std::string line = text.substr(begin, end - begin);
    const bool is_line = line.find_first_not_of(" \t\r\v\f") != std::string::npos;
    num_lines_ += is_line ? 1 : 0;
    parts_.push_back({std::move(line), is_line});
    parts_.push_back({text.substr(end, next - end), false});
    begin = next;
  }
}

void TextLines::append_to(std::vector<TranslationInput>& lines) const {
  for (const Part& part : parts_)
    if (part.is_line) lines.push_back({part.text, "", 0});
}

std::string TextLines::joined(const std::vector<TranslatedLine>& translated, size_t first, size_t rank) const {
  std::string text;
  for (const Part& part : parts_) {
    if (!part.is_line) {
      text += part.text;
      continue;
    }
    const std::vector<Translation>& of_line = translated.at(first++).translations;
    text += of_line[rank < of_line.size() ? rank : 0].text;
  }
  return text;
}

}  // namespace lacuna::serve

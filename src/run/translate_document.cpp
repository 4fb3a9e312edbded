#include "run/translate_document.h"

#include <algorithm>

#include "base/files.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "run/split_text.h"

namespace lacuna {
namespace {

std::string whole_text_of(const std::string& input) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  InputStream stream(input);
  std::string text;
  while (stream.read(text))
    if (text.size() > kMostBytes) throw DataError(stream.name() + ": is larger than 64 MiB, the most of a document; expected it in parts");
  if (const auto bad = first_invalid_utf8(text))
    throw DataError(stream.name() + ": byte " + std::to_string(*bad + 1) + " is not UTF-8; expected text");
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw DataError(stream.name() + ": byte " + std::to_string(nul + 1) + " is NUL; expected text");
  return text;
}

}  // namespace

DocumentFormat format_named(const std::string& name) {
  if (name == "html") return DocumentFormat::kHtml;
  return name == "srt" || name == "vtt" ? DocumentFormat::kSubtitles : DocumentFormat::kText;
}

std::unique_ptr<document::Document> make_document(DocumentFormat format, std::string_view text, const document::Splitting& how) {
  switch (format) {
    case DocumentFormat::kHtml:
      return document::html_document(text, how);
    case DocumentFormat::kSubtitles:
      return document::subtitle_document(text, how);
    default:
      return document::plain_document(text, &how);
  }
}

bool translate_document(const std::string& input, Output& output, Translator& translator, DocumentFormat format,
                        const document::Splitting& how) {
  const SplitText text(make_document(format, whole_text_of(input), how), {});
  std::vector<TranslationInput> sentences;
  text.append_to(sentences);
  const std::vector<TranslatedLine> translated = translator.translate(sentences);
  const auto flagged = std::ranges::count_if(translated, [](const TranslatedLine& line) {
    const auto& verdict = line.translations.front().guard;
    return verdict && !verdict->flags.empty();
  });
  if (flagged > 0) log_warning("the guard flags {} of the {} sentences", flagged, translated.size());
  return output.write(text.joined(translated).translations.front().text);
}

}  // namespace lacuna

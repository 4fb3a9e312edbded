#pragma once

#include <string>

#include "base/output.h"
#include "document/document.h"
#include "search/translator.h"

namespace lacuna {

/// What a text is: lines of plain text, or a document of the format.
enum class DocumentFormat { kText, kHtml, kSubtitles };

/// Returns the format of that name: html, srt or vtt; plain text for any other.
DocumentFormat format_named(const std::string& name);

/// Returns a document of the format.
std::unique_ptr<document::Document> make_document(DocumentFormat format, std::string_view text, const document::Splitting& how);

/// Reads a document, translates it, and writes it; warns of translations that the guard flags. Returns false if nobody reads the output any
/// more. Throws DataError for what is no text or larger than 64 MiB, and as Translator::translate does.
bool translate_document(const std::string& input, Output& output, Translator& translator, DocumentFormat format,
                        const document::Splitting& how);

}  // namespace lacuna

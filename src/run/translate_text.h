#pragma once

#include <cstdint>
#include <string>

#include "base/line_reader.h"
#include "base/output.h"
#include "run/translation_format.h"
#include "run/translation_progress.h"
#include "search/translator.h"

namespace lacuna {

/// How `lacuna translate` takes a text.
struct TextTranslation {
  std::string prefix;  ///< for lines that bring none of their own
  TranslationFormat format;
  int64_t longest = 0;  ///< pieces of the longest sentence of training: longer ones are warned of
};

/// Translates all lines of the reader, as they come. Returns false if nobody reads the output any more. Throws DataError for a bad line;
/// those before it are translated.
bool translate_text(LineReader& reader, Output& output, Translator& translator, const TextTranslation& how, TranslationProgress& progress);

}  // namespace lacuna

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "search/translator.h"

namespace lacuna {

/// The form of input lines and of translations.
struct TranslationFormat {
  bool json = false;    ///< one JSON object a line: {"text": ..., "prefix": ...} in; the same object with "translation", "score", ... out,
                        ///< in place of those of an earlier translation
  bool n_best = false;  ///< prints every translation: `id ||| text ||| [alignment |||] F0= log_prob ||| score`, or "translations" in JSON
  bool scores = false;  ///< text lines begin with score and tab
  bool alignment = false;
};

/// One line of input: the text to translate, and in JSON the object it came in.
struct InputLine {
  TranslationInput input;
  nlohmann::ordered_json fields;
};

/// Reads a line that came from `place`; where JSON is expected, an empty line is an empty text. Throws DataError if it is to be JSON and is
/// not an object with a string "text".
InputLine parse_input_line(const std::string& line, int64_t id, const std::string& place, const TranslationFormat& format);

/// Returns the output for one line of input: one line, or n_best lines of text; each ends in LF.
std::string format_translations(const InputLine& line, const TranslatedLine& translated, const TranslationFormat& format);

}  // namespace lacuna

// A line of `lacuna translate --json`, and its answers in every format: one line, or one for each translation.
#include "fuzz.h"
#include "run/translate_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lacuna::fuzz(data, size, [](std::string_view input) {
    lacuna::TranslationFormat format;
    format.json = true;
    lacuna::InputLine line;
    parse_input_line(std::string(input), "input:1", format, line);
    lacuna::TranslatedLine translated;
    translated.translations.resize(2);
    for (auto& translation : translated.translations) translation.text = line.input.text;
    for (const bool n_best : {false, true}) {
      format.n_best = n_best;
      const std::string answer = format_translations(line, translated, format);
      if (answer.empty() || answer.back() != '\n') __builtin_trap();
    }
  });
}

#include "exchange/argos.h"

#include <spdlog/fmt/fmt.h>

#include <map>

#include "base/json_text.h"
#include "base/spelling.h"
#include "exchange/ctranslate2.h"
#include "text/piece_list.h"

namespace lacuna {
namespace {

constexpr char kArgosTranslate[] = "Argos Translate";

/// English names of the languages that most corpora are of, as Argos Translate shows them.
const std::map<std::string, std::string>& language_names() {
  static const std::map<std::string, std::string> names = {
      {"ar", "Arabic"},    {"bg", "Bulgarian"}, {"bn", "Bengali"},    {"ca", "Catalan"},    {"cs", "Czech"},   {"da", "Danish"},
      {"de", "German"},    {"el", "Greek"},     {"en", "English"},    {"eo", "Esperanto"},  {"es", "Spanish"}, {"et", "Estonian"},
      {"eu", "Basque"},    {"fa", "Persian"},   {"fi", "Finnish"},    {"fr", "French"},     {"ga", "Irish"},   {"gl", "Galician"},
      {"he", "Hebrew"},    {"hi", "Hindi"},     {"hu", "Hungarian"},  {"id", "Indonesian"}, {"it", "Italian"}, {"ja", "Japanese"},
      {"ko", "Korean"},    {"ky", "Kyrgyz"},    {"lt", "Lithuanian"}, {"lv", "Latvian"},    {"ms", "Malay"},   {"nb", "Norwegian"},
      {"nl", "Dutch"},     {"pl", "Polish"},    {"pt", "Portuguese"}, {"ro", "Romanian"},   {"ru", "Russian"}, {"sk", "Slovak"},
      {"sl", "Slovenian"}, {"sq", "Albanian"},  {"sv", "Swedish"},    {"th", "Thai"},       {"tl", "Tagalog"}, {"tr", "Turkish"},
      {"uk", "Ukrainian"}, {"ur", "Urdu"},      {"vi", "Vietnamese"}, {"zh", "Chinese"}};
  return names;
}

std::string name_of_language(const std::string& code) {
  const auto found = language_names().find(code);
  return found == language_names().end() ? code : found->second;
}

std::string metadata_json(const OutgoingModel& model) {
  const std::string src = language_of(model.options.data.src_lang), tgt = language_of(model.options.data.tgt_lang);
  nlohmann::ordered_json json;
  json["package_version"] = json["argos_version"] = "1.0";
  json["type"] = "translate";
  json["from_code"] = src;
  json["from_name"] = name_of_language(src);
  json["to_code"] = tgt;
  json["to_name"] = name_of_language(tgt);
  return json_text(json, 2) + "\n";
}

constexpr char kUseWithArgos[] = R"(```python
import argostranslate.package, argostranslate.translate

argostranslate.package.install_from_path("FILE.argosmodel")
print(argostranslate.translate.translate("A sentence.", "FROM", "TO"))
```

LibreTranslate finds packages that are installed so when it starts.
)";

}  // namespace

void require_argos_has(const OutgoingModel& model) {
  require_sentencepiece(model, kArgosTranslate);
  if (!model.vocabularies.shared() || has_model_for_targets(model.vocabularies.src->serialized()))
    refuse_key("data.shared_vocab", "false", kArgosTranslate,
               "its packages have one vocabulary, cut by one SentencePiece model. Train with data.shared_vocab: true");
  for (const auto& [key, code] :
       {std::pair("data.src_lang", &model.options.data.src_lang), {"data.tgt_lang", &model.options.data.tgt_lang}})
    if (code->empty())
      refuse_key(key, "empty", kArgosTranslate, "its packages are found by their languages: --data.src_lang de --data.tgt_lang en");
}

void write_argos(FileSink& files, const OutgoingModel& model, Precision precision, const ModelTerms& terms) {
  SubfolderSink package(
      files, fmt::format("translate-{}_{}-1_0", language_of(model.options.data.src_lang), language_of(model.options.data.tgt_lang)));
  package.add("metadata.json", metadata_json(model));
  package.add("README.md", model_card(model, terms, kUseWithArgos));
  package.add("sentencepiece.model", without_piece_list(model.vocabularies.src->serialized()));
  SubfolderSink weights(package, "model");
  write_ctranslate2(weights, model, precision);
}

}  // namespace lacuna

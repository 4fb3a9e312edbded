#include "serve/languages.h"

#include <map>

#include "base/spelling.h"

namespace lacuna::serve {

std::string language_name(const std::string& code) {
  static const std::map<std::string, std::string> names = {{"af", "Afrikaans"},     {"am", "Amharic"},    {"ar", "Arabic"},
                                                           {"az", "Azerbaijani"},   {"be", "Belarusian"}, {"bg", "Bulgarian"},
                                                           {"bn", "Bengali"},       {"bs", "Bosnian"},    {"ca", "Catalan"},
                                                           {"cs", "Czech"},         {"cy", "Welsh"},      {"da", "Danish"},
                                                           {"de", "German"},        {"el", "Greek"},      {"en", "English"},
                                                           {"eo", "Esperanto"},     {"es", "Spanish"},    {"et", "Estonian"},
                                                           {"eu", "Basque"},        {"fa", "Persian"},    {"fi", "Finnish"},
                                                           {"fr", "French"},        {"ga", "Irish"},      {"gl", "Galician"},
                                                           {"gu", "Gujarati"},      {"ha", "Hausa"},      {"he", "Hebrew"},
                                                           {"hi", "Hindi"},         {"hr", "Croatian"},   {"hsb", "Upper Sorbian"},
                                                           {"hu", "Hungarian"},     {"hy", "Armenian"},   {"id", "Indonesian"},
                                                           {"ig", "Igbo"},          {"is", "Icelandic"},  {"it", "Italian"},
                                                           {"ja", "Japanese"},      {"ka", "Georgian"},   {"kk", "Kazakh"},
                                                           {"km", "Khmer"},         {"kn", "Kannada"},    {"ko", "Korean"},
                                                           {"lb", "Luxembourgish"}, {"lo", "Lao"},        {"lt", "Lithuanian"},
                                                           {"lv", "Latvian"},       {"mk", "Macedonian"}, {"ml", "Malayalam"},
                                                           {"mn", "Mongolian"},     {"mr", "Marathi"},    {"ms", "Malay"},
                                                           {"mt", "Maltese"},       {"my", "Burmese"},    {"nb", "Norwegian Bokmål"},
                                                           {"ne", "Nepali"},        {"nl", "Dutch"},      {"nn", "Norwegian Nynorsk"},
                                                           {"no", "Norwegian"},     {"pa", "Punjabi"},    {"pl", "Polish"},
                                                           {"ps", "Pashto"},        {"pt", "Portuguese"}, {"ro", "Romanian"},
                                                           {"ru", "Russian"},       {"si", "Sinhala"},    {"sk", "Slovak"},
                                                           {"sl", "Slovenian"},     {"so", "Somali"},     {"sq", "Albanian"},
                                                           {"sr", "Serbian"},       {"sv", "Swedish"},    {"sw", "Swahili"},
                                                           {"ta", "Tamil"},         {"te", "Telugu"},     {"th", "Thai"},
                                                           {"tl", "Tagalog"},       {"tr", "Turkish"},    {"uk", "Ukrainian"},
                                                           {"ur", "Urdu"},          {"uz", "Uzbek"},      {"vi", "Vietnamese"},
                                                           {"xh", "Xhosa"},         {"yi", "Yiddish"},    {"yo", "Yoruba"},
                                                           {"zh", "Chinese"},       {"zu", "Zulu"}};
  const auto found = names.find(language_of(code));
  return found == names.end() ? code : found->second;
}

}  // namespace lacuna::serve

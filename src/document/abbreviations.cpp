#include "document/abbreviations.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

namespace lacuna::document {
namespace {

/// Titles, months, references: what stands before a name or a number. Words that often end a sentence (etc., usw., Inc., a.m.) are left
/// out; # marks those that count before a digit alone.
constexpr std::string_view kOfAll = "approx# ca cf dr eds fig# max# min# mr mrs ms mt no# nos# nr prof pp# st tel vgl vol# vs";

struct OfLanguage {
  std::string_view code, words;
};
constexpr std::array kOfLanguages = {
    OfLanguage{"cs", "gen ing judr mgr mj mudr např phdr plk pplk str sv tj tř tzv ul zvl čl"},
    OfLanguage{"da", "hhv hr kgl kl# mht sml stk"},
    OfLanguage{"de",
               "abb# abs# abschn# allg apr# art# aug aufl bd# bes bspw bzgl bzw dez dipl dt ebd einschl engl entspr ev evtl feb franz gegr "
               "ggf griech "
               "hl hr hrn hrsg ing inkl insb insbes jh kap# jan# kath korr lat mio mrd msgr nov okt phil resp röm sept sog stellv str tab# "
               "techn verw zit zt "
               "zzgl"},
    OfLanguage{"en",
               "adm apr asst aug ave blvd brig capt cmdr col cpl dec dept feb gen gov hon insp jan jul# jun# lt maj mar# messrs mlle mme "
               "nov oct pres pvt rep reps rev sen sens sep# sept "
               "sgt supt viz"},
    OfLanguage{"es", "arq art# arts# av avda cap# dra excmo gral ing lic núm# pág# págs# sr sra sres srta ud uds vd vds"},
    OfLanguage{"fr", "art# av boul chap# hab mgr mlle mlles mm mme mmes me réf# ste"},
    OfLanguage{"it", "arch art# artt# avv cap# dott geom ing pag# pagg# rag sig sigg"},
    OfLanguage{"nb", "hhv kap# kl# mht"},
    OfLanguage{"nl", "bijv blz# dhr drs excl incl ing ir jhr mej mevr mw resp"},
    OfLanguage{"pl", "al art# godz# gen im inż kpt ks mgr np pkt# płk str# tzn tzw ul ust# św"},
    OfLanguage{"pt", "arq art# arts# av cap# dra drs eng exma exmo núm# pág# págs# sr sra sras srs"},
    OfLanguage{"ru", "акад им обл пл пр проф рис см ср стр тов ул"},
    OfLanguage{"sk", "gen ing judr mgr mudr napr phdr plk pplk str sv tj tzv ul čl"},
    OfLanguage{"sv", "dvs hr kap# kl#"},
};

constexpr std::array<std::string_view, 22> kWithOrdinals = {"de", "da", "nb", "nn", "no", "fi", "is", "fo", "cs", "sk", "sl",
                                                            "hr", "bs", "sr", "hu", "et", "lv", "pl", "tr", "lb", "eu", "az"};

using Words = std::set<std::string, std::less<>>;

Words parsed_words(std::string_view list) {
  Words words;
  while (!list.empty()) {
    const size_t size = std::min(list.find(' '), list.size());
    words.emplace(list.substr(0, size));
    list.remove_prefix(std::min(size + 1, list.size()));
  }
  return words;
}

/// Returns the word with a small letter in place of a capital one of ASCII at its beginning.
std::string with_small_letter(std::string_view word) {
  std::string small(word);
  if (!small.empty() && small[0] >= 'A' && small[0] <= 'Z') small[0] = static_cast<char>(small[0] - 'A' + 'a');
  return small;
}

}  // namespace

bool is_abbreviation(std::string_view language, std::string_view word, bool is_before_digit) {
  static const auto kLists = [] {
    std::map<std::string_view, Words> lists = {{"", parsed_words(kOfAll)}};
    for (const OfLanguage& one : kOfLanguages) lists[one.code] = parsed_words(one.words);
    return lists;
  }();
  if (is_before_digit && language == "de" && word.ends_with("str")) return true;  // Goethestr. 5
  const std::string small = with_small_letter(word);
  for (const std::string_view code : {std::string_view(), language}) {
    const auto list = kLists.find(code);
    if (list == kLists.end()) continue;
    if (list->second.contains(small) || (is_before_digit && list->second.contains(small + "#"))) return true;
  }
  return false;
}

bool has_ordinals_with_full_stop(std::string_view language) {
  return std::ranges::find(kWithOrdinals, language) != kWithOrdinals.end();
}

}  // namespace lacuna::document

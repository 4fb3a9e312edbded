#include "run/line_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <unordered_map>

#include "base/line_reader.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

bool is_one_of(const ordered_json& value, std::initializer_list<const char*> words) {
  return value.is_string() && std::ranges::count(words, value.get_ref<const std::string&>()) > 0;
}

bool asks_to_switch(const ordered_json& value) {
  if (value.is_boolean() || is_one_of(value, {"true", "false", "1", "0"})) return true;
  const double number = value.is_number() ? value.get<double>() : -1;
  return number == 0 || number == 1;
}

/// Returns true unless the value may be the links of an earlier translation, or other data.
bool asks_for_links(const ordered_json& value) {
  if (!value.is_string()) return value.is_boolean() || value.is_number();
  const auto& text = value.get_ref<const std::string&>();
  return text.find_first_not_of("0123456789- ") != std::string::npos;
}

bool asks_for_format(const ordered_json& value) {
  return is_one_of(value, {"text", "html", "srt", "vtt"});
}

/// What all lines share beside options of `translate`, and how it is asked for.
struct SharedField {
  const char* key;
  bool (*is_asked_for)(const ordered_json& value);
  const char *by_program, *by_service;
};

constexpr SharedField kSharedFields[] = {
    {"alignment", asks_for_links, "start the program with --alignment word", "ask by alignment=word in the query"},
    {"split", asks_to_switch, "start the program with --split", "ask by split=true or split=false in the query"},
    {"format", asks_for_format, "use --format html, srt or vtt without --json for a document", "ask by format=html in the query"},
    {"attention", asks_to_switch, "use lacuna serve or the Python package, which give it", "ask by attention=true in the query"},
};

/// Fields that are read, written or usual, beside those that may be near misses.
constexpr const char* kOtherFields[] = {
    "text",     "prefix",        "id",        "source",   "target",  "translation", "translations",  "score",
    "log_prob", "unknown_ratio", "truncated", "too_long", "cropped", "error",       "second_search", "length_ratio"};

bool are_terms(const ordered_json& value) {
  return value.is_object() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const ordered_json& one) { return one.is_string(); });
}

/// Returns the fields that a value could be meant for, short names first.
std::vector<std::string> fields_taking(const ordered_json& value) {
  std::vector<std::string> names = options_taking(value);
  for (const SharedField& shared : kSharedFields)
    if (shared.is_asked_for(value)) names.emplace_back(shared.key);
  if (value.is_boolean()) names.emplace_back("tokens");
  if (are_terms(value)) names.emplace_back("terms");
  std::ranges::stable_sort(names, {}, &std::string::size);  // of those that a key begins, the shortest is meant
  return names;
}

const std::vector<std::string>& all_fields() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = line_option_names();
    for (const SharedField& shared : kSharedFields) names.emplace_back(shared.key);
    names.insert(names.end(), {"tokens", "terms"});
    names.insert(names.end(), std::begin(kOtherFields), std::end(kOtherFields));
    return names;
  }();
  return all;
}

/// Returns true for a key that is like no field with a meaning, or is one. Remembers keys, which are the same in most lines.
bool is_harmless(const std::string& key) {
  constexpr size_t kMostKeys = 1000, kLongest = 64;  // nearest_word() knows no longer ones either
  if (key.size() > kLongest) return true;
  static thread_local std::unordered_map<std::string, bool> known;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const std::string nearest = nearest_word(key, all_fields());
  const bool harmless = nearest.empty() || nearest == key;
  if (known.size() < kMostKeys) known.emplace(key, harmless);
  return harmless;
}

}  // namespace

std::string shown_value(const ordered_json& value) {
  constexpr size_t kShown = 100;
  return value.dump(-1, ' ', /*ensure_ascii=*/true).substr(0, kShown);
}

std::vector<NearMiss> near_misses(const ordered_json& fields, const std::string& place) {
  std::vector<NearMiss> found;
  for (const auto& [key, value] : fields.items()) {
    if (is_harmless(key)) continue;
    std::vector<std::string> names = fields_taking(value);
    if (names.empty()) continue;
    names.insert(names.end(), std::begin(kOtherFields), std::end(kOtherFields));
    const std::string nearest = nearest_word(key, names);
    if (nearest.empty() || std::ranges::count(kOtherFields, nearest) > 0) continue;
    found.push_back({key, fmt::format("{}: \"{}\" is {}, and a line has no such option; did you mean \"{}\"? A field of your own may have "
                                      "another name, or stand in an object, as in \"own\": {{\"{}\": ...}}",
                                      place, key, shown_value(value), nearest, key)});
  }
  return found;
}

void require_none_shared(const ordered_json& fields, const LineSettings& settings, const std::string& place) {
  for (const SharedField& shared : kSharedFields) {
    const auto found = fields.find(shared.key);
    if (found == fields.end() || !shared.is_asked_for(*found)) continue;
    throw LineError("with wrong JSON",
                    fmt::format("{}: \"{}\" is {}, and all lines share that: take it out of the line, and {}. A field of your own may have "
                                "another name",
                                place, shared.key, shown_value(*found), settings.are_bounded ? shared.by_service : shared.by_program));
  }
}

bool asks_for_tokens(const ordered_json& fields, const std::string& place) {
  const auto found = fields.find("tokens");
  if (found == fields.end() || found->is_null() || found->is_array()) return false;
  if (!found->is_boolean())
    throw LineError("with wrong JSON", fmt::format("{}: \"tokens\" is {}; expected true or false, or a list of an earlier translation",
                                                   place, shown_value(*found)));
  return found->get<bool>();
}

}  // namespace lacuna

#include "run/line_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/line_reader.h"
#include "run/translate_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

bool is_one_of(const ordered_json& value, std::initializer_list<const char*> words) {
  return value.is_string() && std::ranges::count(words, value.get_ref<const std::string&>()) > 0;
}

bool is_number(const ordered_json& value, double number) {
  return value.is_number() && value.get<double>() == number;
}

/// Returns what a value asks for that may be meant as a switch; empty if it is anything else.
std::optional<bool> as_switch(const ordered_json& value) {
  if ((value.is_boolean() && value.get<bool>()) || is_one_of(value, {"true", "1"}) || is_number(value, 1)) return true;
  if ((value.is_boolean() && !value.get<bool>()) || is_one_of(value, {"false", "0"}) || is_number(value, 0)) return false;
  return {};
}

/// Returns true for what asks for a switch to be other than it is for all lines.
bool asks_to_turn(const ordered_json& value, bool is_on) {
  const std::optional<bool> wanted = as_switch(value);
  return wanted && *wanted != is_on;
}

/// Returns true for what asks for other links than all lines have. The links of an earlier translation and other data ask for nothing.
bool asks_for_links(const ordered_json& value, const TranslationFormat& format) {
  if (as_switch(value)) return asks_to_turn(value, format.alignment);
  if (!value.is_string()) return value.is_number();
  const auto& text = value.get_ref<const std::string&>();
  return text.find_first_not_of("0123456789- ") != std::string::npos && !(format.alignment && text == "word");
}

bool asks_to_split(const ordered_json& value, const TranslationFormat& format) {
  return asks_to_turn(value, format.paragraphs);
}

bool asks_for_document(const ordered_json& value, const TranslationFormat& /*format*/) {
  return is_one_of(value, {"html", "srt", "vtt"});
}

bool asks_for_attention(const ordered_json& value, const TranslationFormat& format) {
  return asks_to_turn(value, format.attention);
}

/// What all lines share beside options of `translate`, and how it is asked for.
struct SharedField {
  const char* key;
  bool (*is_asked_for)(const ordered_json& value, const TranslationFormat& format);
  const char *by_program, *by_service;
};

constexpr SharedField kSharedFields[] = {
    {"alignment", asks_for_links, "start the program with --alignment word, or without it",
     "ask by alignment=word in the query, or leave that out"},
    {"split", asks_to_split, "start the program with --split, or without it", "ask by split=true or split=false in the query"},
    {"format", asks_for_document, "use --format html, srt or vtt without --json for a document", "ask by format=html in the query"},
    {"attention", asks_for_attention, "use lacuna serve or the Python package, which give it", "ask by attention=true in the query"},
};

/// What other programs call an option.
struct OtherName {
  const char *key, *option;
};

constexpr OtherName kOtherNames[] = {
    {"beam", "beam_size"},     {"beams", "beam_size"},    {"num_beams", "beam_size"},   {"num_hypotheses", "n_best"},
    {"max_len", "max_length"}, {"min_len", "min_length"}, {"lenpen", "length_penalty"}, {"max_new_tokens", "max_length"},
    {"temp", "temperature"},   {"top_k", "sample_k"},     {"top_p", "sample_p"},        {"num_return_sequences", "n_best"},
};

/// Returns true if one letter more, less or other, or two that changed places, make one word of the other.
bool is_one_edit_away(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const size_t alike = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  a.remove_prefix(alike);
  b.remove_prefix(alike);
  if (a.size() < b.size()) return a == b.substr(1);
  if (a.substr(std::min<size_t>(1, a.size())) == b.substr(std::min<size_t>(1, b.size()))) return true;
  return a.size() > 1 && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2);
}

bool is_almost(std::string_view key, std::string_view name) {
  constexpr size_t kSomeLetters = 5;  // one letter of a shorter name makes another word
  if (key == name) return false;
  const auto other = std::ranges::find(kOtherNames, key, &OtherName::key);
  return other != std::end(kOtherNames) ? other->option == name : name.size() >= kSomeLetters && is_one_edit_away(key, name);
}

bool are_terms(const ordered_json& value) {
  return value.is_object() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const ordered_json& one) { return one.is_string(); });
}

/// Returns the fields that a value could be meant for.
std::vector<std::string> fields_taking(const ordered_json& value, const TranslationFormat& format) {
  std::vector<std::string> names = options_taking(value, format.lines);
  for (const SharedField& shared : kSharedFields)
    if (shared.is_asked_for(value, format)) names.emplace_back(shared.key);
  if (value.is_boolean()) names.emplace_back("tokens");
  if (are_terms(value)) names.emplace_back("terms");
  return names;
}

}  // namespace

std::string shown_value(const ordered_json& value) {
  constexpr size_t kShown = 100;
  return value.dump(-1, ' ', /*ensure_ascii=*/true).substr(0, kShown);
}

std::vector<NearMiss> near_misses(const ordered_json& fields, const TranslationFormat& format, const std::string& place) {
  std::vector<NearMiss> found;
  for (const auto& [key, value] : fields.items()) {
    const std::vector<std::string> names = fields_taking(value, format);
    const auto meant = std::ranges::find_if(names, [&, &word = key](const std::string& name) { return is_almost(word, name); });
    if (meant == names.end()) continue;
    found.push_back({key, fmt::format("{}: \"{}\" is {}, and a line has no such option; did you mean \"{}\"? A field of your own may have "
                                      "another name, or stand in an object, as in \"own\": {{\"{}\": ...}}",
                                      place, key, shown_value(value), *meant, key)});
  }
  return found;
}

void require_none_shared(const ordered_json& fields, const TranslationFormat& format, const std::string& place) {
  for (const SharedField& shared : kSharedFields) {
    const auto found = fields.find(shared.key);
    if (found == fields.end() || !shared.is_asked_for(*found, format)) continue;
    throw LineError("with wrong JSON",
                    fmt::format("{}: \"{}\" is {}, and all lines share that: take it out of the line, and {}. A field of your own may have "
                                "another name",
                                place, shared.key, shown_value(*found), format.lines.are_bounded ? shared.by_service : shared.by_program));
  }
}

bool asks_for_tokens(const ordered_json& fields, const std::string& place) {
  const auto found = fields.find("tokens");
  if (found == fields.end() || (!found->is_boolean() && !as_switch(*found))) return false;
  if (!found->is_boolean())
    throw LineError(
        "with wrong JSON",
        fmt::format("{}: \"tokens\" is {}; expected true or false. A field of your own may have another name", place, shown_value(*found)));
  return found->get<bool>();
}

}  // namespace lacuna

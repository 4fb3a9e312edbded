#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "analysis/links.h"
#include "base/error.h"
#include "base/json_text.h"
#include "run/translate_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

/// Finds integers of more than 64 bits, which parsing would change.
class LongIntegers : public nlohmann::json_sax<ordered_json> {
 public:
  static bool are_in(const std::string& line) {
    LongIntegers look;
    ordered_json::sax_parse(line, &look);
    return look.found_;
  }

  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    found_ = digits.find_first_of(".eE") == string_t::npos;
    return !found_;
  }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return true; }
  bool key(string_t& /*name*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t /*position*/, const std::string& /*token*/, const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool found_ = false;
};

/// The error of a line that is to be JSON.
LineError not_as_expected(const std::string& place, const std::string& what) {
  return {"with wrong JSON", place + ": " + what};
}

std::string string_field(const ordered_json& fields, const char* key, const std::string& place) {
  const auto found = fields.find(key);
  if (found == fields.end()) return "";
  if (!found->is_string()) throw not_as_expected(place, fmt::format("\"{}\" is {}; expected a string", key, shown_value(*found)));
  return found->get<std::string>();
}

/// Reads the terms of a line: {"source term": "its translation", ...}.
document::Terms terms_field(const ordered_json& fields, const std::string& place) {
  constexpr size_t kMostTerms = 1000;
  document::Terms terms;
  const auto found = fields.find("terms");
  if (found == fields.end()) return terms;
  if (!found->is_object())
    throw not_as_expected(
        place, fmt::format("\"terms\" is {}; expected an object, {{\"source term\": \"its translation\"}}", shown_value(*found)));
  if (found->size() > kMostTerms)
    throw not_as_expected(place, fmt::format("\"terms\" has {} terms; expected {} at most", found->size(), kMostTerms));
  for (const auto& [source, target] : found->items()) {
    if (!target.is_string())
      throw not_as_expected(
          place, fmt::format("\"terms\": {} is {}; expected a string, its translation", shown_value(source), shown_value(target)));
    terms.add(source, target.get<std::string>(), place + ": \"terms\"");
  }
  return terms;
}

/// Returns true if a line says itself how many translations it wants.
bool asks_for_several(const ordered_json& fields) {
  const auto found = fields.find("n_best");
  return found != fields.end() && found->is_number();
}

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

/// Returns the pieces of a translation with their log-probabilities; none of an empty source.
ordered_json tokens_json(const Translation& translation, const Vocabulary* tgt) {
  ordered_json tokens = ordered_json::array();
  for (size_t i = 0; i < translation.token_log_probs.size(); ++i) {
    const TokenId token = i < translation.tokens.size() ? translation.tokens[i] : kEos;
    tokens.push_back({{"piece", tgt->piece(token)}, {"log_prob", translation.token_log_probs[i]}});
  }
  return tokens;
}

ordered_json to_json(const InputLine& line, const Translation& translation, const TranslationFormat& format) {
  ordered_json value = {{"translation", translation.text}, {"score", translation.score}, {"log_prob", translation.log_prob}};
  if (format.alignment) value["alignment"] = pharaoh(translation.alignment);
  if (translation.is_truncated) value["truncated"] = true;
  if (translation.guard) value["guard"] = guard_json(*translation.guard);
  if (format.tokens || line.wants_tokens) value["tokens"] = tokens_json(translation, format.tgt.get());
  return value;
}

/// Returns the fields of an input line, without those of an earlier translation, if it holds one.
ordered_json given_fields(const InputLine& line) {
  ordered_json fields = line.fields.is_object() ? line.fields : ordered_json::object();  // a line that cannot be parsed has none
  fields.erase("error");
  if (!fields.contains("translation") && !fields.contains("translations")) return fields;
  for (const char* key :
       {"translation", "score", "log_prob", "alignment", "truncated", "translations", "guard", "second_search", "too_long", "cropped"})
    fields.erase(key);
  if (const auto tokens = fields.find("tokens"); tokens != fields.end() && tokens->is_array()) fields.erase(tokens);
  return fields;
}

std::string json_line(const InputLine& line, const TranslatedLine& translated, const TranslationFormat& format,
                      const AddToTranslation& add) {
  const auto json_of = [&](const Translation& translation) {
    ordered_json one = to_json(line, translation, format);
    if (add) add(translation.rank, one);
    return one;
  };
  ordered_json out = given_fields(line);
  for (const char* key : {"unknown_ratio", "too_long", "cropped"}) out.erase(key);
  if (translated.unknown_ratio > 0) out["unknown_ratio"] = translated.unknown_ratio;
  if (translated.is_cropped || (format.longest > 0 && translated.src_pieces > format.longest)) out["too_long"] = true;
  if (translated.is_cropped) out["cropped"] = true;
  if (!line.error.empty()) {
    out["error"] = line.error;
  } else if (format.n_best || asks_for_several(line.fields)) {
    out["translations"] = ordered_json::array();
    for (const Translation& translation : translated.translations) out["translations"].push_back(json_of(translation));
  } else {
    for (const char* key : {"alignment", "truncated", "guard", "second_search"}) out.erase(key);  // the result may have none
    out.update(json_of(translated.translations.front()));
  }
  if (translated.is_second_search) out["second_search"] = true;
  return json_text(out) + "\n";
}

std::string n_best_lines(const InputLine& line, const TranslatedLine& translated, const TranslationFormat& format) {
  std::string text;
  for (const Translation& translation : translated.translations) {
    text += fmt::format("{} ||| {} ||| ", line.input.id, translation.text);
    if (format.alignment) text += pharaoh(translation.alignment) + " ||| ";
    text += fmt::format("F0= {:.6g} ||| {:.6g}\n", translation.log_prob, translation.score);
  }
  return text;
}

}  // namespace

ordered_json guard_json(const GuardVerdict& verdict) {
  ordered_json flags = ordered_json::array();
  for (const GuardFlag& flag : verdict.flags) flags.push_back(flag.measure);
  return {{"length_ratio", verdict.length_ratio},
          {"loop", verdict.loop},
          {"unattended", or_null(verdict.unattended)},
          {"null_rate", or_null(verdict.null_rate)},
          {"token_log_prob", verdict.token_log_prob},
          {"risk", verdict.risk},
          {"flags", flags}};
}

void parse_input_line(const std::string& text, const std::string& place, const TranslationFormat& format, InputLine& line) {
  if (!format.json) {
    line.input.text = text;
    return;
  }
  const bool is_empty = text.find_first_not_of(" \t\r") == std::string::npos;
  constexpr int kDeepest = 100;  // what writes them again goes as deep into the stack
  bool is_deep = false, has_large = false;
  const auto look = [&](int level, ordered_json::parse_event_t event, ordered_json& value) {
    is_deep = is_deep || level > kDeepest;
    has_large =
        has_large || (event == ordered_json::parse_event_t::value && value.is_number_float() && std::abs(value.get<double>()) >= 0x1p63);
    return !is_deep;
  };
  ordered_json fields = is_empty ? ordered_json::object({{"text", ""}}) : ordered_json::parse(text, look, false);
  if (is_deep) throw not_as_expected(place, fmt::format("its JSON is nested more than {} deep; expected {{\"text\": ...}}", kDeepest));
  if (fields.is_discarded())
    throw not_as_expected(place, "is not a JSON object, or holds a number beyond all range; expected {\"text\": ...} a line");
  if (has_large && LongIntegers::are_in(text))
    throw not_as_expected(place, "holds a whole number of more than 64 bits, which would come out as another one; expected it in quotes");
  if (fields.is_object()) line.fields = std::move(fields);
  if (!line.fields.contains("text"))
    throw not_as_expected(place, "is not a JSON object with \"text\"; expected one {\"text\": ...} a line");
  const std::string src = string_field(line.fields, "text", place), prefix = string_field(line.fields, "prefix", place);
  if (!format.paragraphs && src.find('\n') != std::string::npos)
    throw not_as_expected(place, "\"text\" holds a line break; expected one sentence");
  if ((src + prefix).find('\0') != std::string::npos) throw not_as_expected(place, "holds a NUL character (\\u0000); expected text");
  line.terms = terms_field(line.fields, place);
  if (!format.takes_terms && !line.terms.is_empty())
    throw not_as_expected(place, "\"terms\" do not go with --alignment subword; expected --alignment word");
  line.input.options = own_options(line.fields, format.lines, place);
  require_none_shared(line.fields, format, place);
  line.wants_tokens = asks_for_tokens(line.fields, place);
  line.near_misses = near_misses(line.fields, format, place);
  if (format.lines.are_bounded && !line.near_misses.empty()) throw LineError("with wrong JSON", line.near_misses.front().message);
  line.input.text = src;
  line.input.prefix = prefix;
}

std::string format_translations(const InputLine& line, const TranslatedLine& translated, const TranslationFormat& format,
                                const AddToTranslation& add) {
  if (format.json) return json_line(line, translated, format, add);
  if (format.n_best) return n_best_lines(line, translated, format);
  const Translation& best = translated.translations.front();
  std::string text = format.scores ? fmt::format("{:.6g}\t{}", best.score, best.text) : best.text;
  if (format.alignment) text += " ||| " + pharaoh(best.alignment);
  return text + "\n";
}

}  // namespace lacuna

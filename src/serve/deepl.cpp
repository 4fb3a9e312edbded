#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/spelling.h"
#include "serve/api.h"
#include "serve/form.h"
#include "serve/json_body.h"
#include "serve/languages.h"

namespace lacuna::serve {
namespace {

using nlohmann::ordered_json;

/// What a client of DeepL sends.
struct AskedOfDeepL {
  std::vector<std::string> texts;
  std::string source, target, key;
  TextKind kind;
  bool joins_lines = false;  ///< line breaks of the texts are spaces
  bool shows_characters = false;
};

/// Returns a code as DeepL writes it: pt_BR is PT-BR.
std::string deepl_code(const std::string& code) {
  std::string upper(code);
  std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  std::ranges::replace(upper, '_', '-');
  return upper;
}

/// Returns how well a model's language is the one that is asked for: 2 = it is, 1 = another variety of it, 0 = it is not.
int match_of(const std::string& asked, const std::string& language) {
  if (deepl_code(asked) == deepl_code(language)) return 2;
  return language_of(asked) == language_of(language) ? 1 : 0;
}

/// Returns the model for a request; without a source language the only one into the target. Throws RequestError 400.
ServedModelPtr model_for(const Api& api, const AskedOfDeepL& asked) {
  const std::string there_is = std::string("; there is ").append(api.catalog.pairs());
  if (asked.target.empty()) throw RequestError(400, "target_lang, the code of a language, is missing" + there_is);
  ServedModelPtr best;
  int best_match = 0, equally_good = 0;
  for (const ServedModelPtr& model : api.catalog.models()) {
    const int of_source = asked.source.empty() ? 2 : match_of(asked.source, model->src_lang);
    const int match = of_source * match_of(asked.target, model->tgt_lang);
    if (match == 0 || match < best_match) continue;
    equally_good = match == best_match ? equally_good + 1 : 1;
    best_match = match;
    best = model;
  }
  if (!best) return api.catalog.find(asked.source.empty() ? "auto" : asked.source, asked.target);  // throws: it says what there is
  if (equally_good > 1 && asked.source.empty())
    throw RequestError(400, "several models translate into target_lang, and languages are not detected; name source_lang" + there_is);
  return best;
}

/// Options of DeepL that change a translation, and that no model here has. Each may be given with a value that asks for nothing.
void require_nothing_asked(const std::string& name, const std::string& value) {
  static const std::map<std::string, std::vector<std::string>> kAllowed = {
      {"formality", {"", "default", "prefer_more", "prefer_less"}},
      {"model_type", {"", "latency_optimized", "quality_optimized", "prefer_quality_optimized"}},
      {"preserve_formatting", {"", "0", "1", "false", "true"}},
      {"outline_detection", {"", "0", "1", "false", "true"}},
      {"tag_handling_version", {"", "v1", "v2"}},
  };
  const auto known = kAllowed.find(name);
  if (known == kAllowed.end()) throw RequestError(400, name + " is not supported; leave it out");
  if (!std::ranges::count(known->second, value))
    throw RequestError(400, name + " is not supported with this value; leave it out" +
                                (known->second.size() > 1 ? ", or expect one of " + join({known->second.begin() + 1, known->second.end()})
                                                          : std::string()));
}

/// Takes one field of a request, whose value is text here. `texts` are taken by the caller.
void take_field(const std::string& name, const std::string& value, AskedOfDeepL& asked) {
  if (name == "source_lang") {
    asked.source = value;
  } else if (name == "target_lang") {
    asked.target = value;
  } else if (name == "auth_key") {
    asked.key = value;
  } else if (name == "tag_handling") {
    if (!value.empty() && value != "html") throw RequestError(400, "tag_handling is not known; expected html, or nothing for plain text");
    if (value == "html") asked.kind.format = DocumentFormat::kHtml;
  } else if (name == "split_sentences") {
    if (value != "0" && value != "1" && value != "nonewlines")
      throw RequestError(400, "split_sentences is not known; expected 0, 1 or nonewlines");
    asked.kind.splits = value != "0";
    asked.joins_lines = value == "nonewlines";
  } else if (name == "show_billed_characters") {
    asked.shows_characters = switch_of(value, name);
  } else {
    static constexpr const char* kKnown[] = {
        "formality",   "model_type", "preserve_formatting", "outline_detection",  "tag_handling_version",
        "glossary_id", "context",    "splitting_tags",      "non_splitting_tags", "ignore_tags"};
    if (!std::ranges::count(kKnown, name))
      throw RequestError(400, unknown_name("the request", name,
                                           {"text", "target_lang", "source_lang", "tag_handling", "split_sentences",
                                            "show_billed_characters", "auth_key"}));
    require_nothing_asked(name, value);
  }
}

AskedOfDeepL deepl_asked_by_json(const std::string& body, AskedOfDeepL asked) {
  const ordered_json object = parsed_object(body, "{\"text\": [...], \"target_lang\": ...}");
  for (const auto& [name, value] : object.items()) {
    if (name == "text") {
      asked.texts = strings_of(value, name);
    } else if (value.is_boolean()) {
      take_field(name, value.get<bool>() ? "true" : "false", asked);
    } else if (!value.is_null() && !(value.is_array() && value.empty())) {
      take_field(name, value.is_array() ? "a list" : string_of(value, name), asked);
    }
  }
  return asked;
}

AskedOfDeepL deepl_asked_by_form(const std::string& body, AskedOfDeepL asked) {
  for (auto& [name, value] : form_fields(body)) {
    if (name == "text") {
      asked.texts.push_back(std::move(value));
    } else {
      take_field(name, value, asked);
    }
  }
  return asked;
}

AskedOfDeepL deepl_asked_by(const Request& request, bool splits) {
  AskedOfDeepL asked;
  asked.kind.splits = splits;
  if (request.content_type == "application/json") {
    asked = deepl_asked_by_json(request.body, std::move(asked));
  } else if (request.content_type == "application/x-www-form-urlencoded") {
    require_form(request.body);
    asked = deepl_asked_by_form(request.body, std::move(asked));
  } else {
    throw RequestError(415, "expected the Content-Type application/json or application/x-www-form-urlencoded");
  }
  if (asked.texts.empty()) throw RequestError(400, "text, what is to be translated, is missing");
  if (asked.joins_lines && asked.kind.format == DocumentFormat::kText)
    for (std::string& text : asked.texts)
      std::ranges::replace_if(
          text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return asked;
}

/// The texts of a request while their sentences are translated.
struct TextsOfDeepL {
  AskedOfDeepL asked;
  std::vector<SplitText> texts;
  std::vector<TranslatedLine> translated;
  std::string src_lang;

  Response response() const {
    ordered_json translations = ordered_json::array();
    std::span<const TranslatedLine> left = translated;
    for (size_t i = 0; i < texts.size(); ++i) {
      ordered_json& one = translations.emplace_back(ordered_json::object({{"detected_source_language", deepl_code(src_lang)}}));
      one["text"] = texts[i].joined(left.first(texts[i].size())).translations.front().text;
      if (asked.shows_characters) one["billed_characters"] = characters_of(asked.texts[i]);
      left = left.subspan(texts[i].size());
    }
    return {200, "application/json", json_text(ordered_json::object({{"translations", std::move(translations)}})) + "\n"};
  }
};

}  // namespace

void answer_deepl(const Api& api, const ExchangePtr& exchange) {
  const auto progress = std::make_shared<TextsOfDeepL>();
  progress->asked = deepl_asked_by(exchange->request, api.splits);
  const AskedOfDeepL& asked = progress->asked;
  Wanted wanted;
  wanted.client = api.clients.client_of(exchange->request, asked.key);
  const ServedModelPtr model = model_for(api, asked);
  progress->src_lang = model->src_lang;
  api.count_characters(*exchange, asked.texts);
  progress->texts.reserve(asked.texts.size());
  for (const std::string& text : asked.texts) progress->texts.push_back(add_text(*model, text, asked.kind, wanted));
  api.translate(
      *exchange, model, wanted, [progress](size_t, const TranslatedLine& line, const Attentions&) { progress->translated.push_back(line); },
      [progress, exchange](const std::string& error) {
        exchange->answer(error.empty() ? progress->response() : failure_response(exchange->request));
      });
}

Response deepl_languages_response(const Api& api, const Request& request) {
  api.clients.client_of(request, "");
  const std::string type = value_of(request.query, "type", value_of(parse_form(request.body), "type", "source"));
  if (type != "source" && type != "target") throw RequestError(400, "type is not known; expected source or target");
  const bool are_targets = type == "target";
  std::map<std::string, std::string> names;
  for (const ServedModelPtr& model : api.catalog.models()) {
    const std::string& code = are_targets ? model->tgt_lang : model->src_lang;
    names.emplace(deepl_code(code), language_name(code));
  }
  ordered_json list = ordered_json::array();
  for (const auto& [code, name] : names) {
    ordered_json& one = list.emplace_back(ordered_json::object({{"language", code}, {"name", name}}));
    if (are_targets) one["supports_formality"] = false;
  }
  return {200, "application/json", json_text(list) + "\n"};
}

Response deepl_usage_response(const Api& api, const Request& request) {
  constexpr int64_t kUnlimited = 1'000'000'000'000;  // as DeepL writes it
  const std::string client = api.clients.client_of(request, "");
  const ordered_json usage = {{"character_count", api.clients.characters_of(client)}, {"character_limit", kUnlimited}};
  return {200, "application/json", json_text(usage) + "\n"};
}

}  // namespace lacuna::serve

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "serve/api.h"
#include "serve/form.h"
#include "serve/json_body.h"
#include "serve/languages.h"

namespace lacuna::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostAlternatives = 100;

/// What a client of LibreTranslate sends.
struct Asked {
  std::vector<std::string> texts;
  bool is_list = false;
  std::string source, target, format = "text", key;
  int64_t alternatives = 0;
  bool splits = true;
};

int64_t alternatives_of(const ordered_json& value) {
  if (value.is_string()) return number_of(value.get<std::string>(), "alternatives", kMostAlternatives);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMostAlternatives)
    throw RequestError(400, "alternatives is not a whole number from 0 to " + std::to_string(kMostAlternatives));
  return value.get<int64_t>();
}

Asked asked_by_json(const std::string& body, bool splits) {
  Asked asked;
  asked.splits = splits;
  const ordered_json object = parsed_object(body, "{\"q\": ..., \"source\": ..., \"target\": ...}");
  for (const auto& [name, value] : object.items()) {
    if (name == "q") {
      asked.is_list = value.is_array();
      asked.texts = asked.is_list ? strings_of(value, "q") : std::vector{string_of(value, "q")};
    } else if (name == "alternatives") {
      asked.alternatives = alternatives_of(value);
    } else if (name == "split") {
      asked.splits = switch_in(value, name);
    } else {
      for (const auto& [known, field] :
           {std::pair("source", &asked.source), {"target", &asked.target}, {"format", &asked.format}, {"api_key", &asked.key}})
        if (name == known && !value.is_null()) *field = string_of(value, name);
    }
  }
  if (!object.contains("q")) throw RequestError(400, "q, the text to translate, is missing");
  return asked;
}

Asked asked_by_form(const Form& form, bool splits) {
  const auto text = form.find("q");
  if (text == form.end()) throw RequestError(400, "q, the text to translate, is missing");
  const std::string alternatives = value_of(form, "alternatives"), split = value_of(form, "split");
  return {{text->second},
          false,
          value_of(form, "source"),
          value_of(form, "target"),
          value_of(form, "format", "text"),
          value_of(form, "api_key"),
          alternatives.empty() ? 0 : number_of(alternatives, "alternatives", kMostAlternatives),
          split.empty() ? splits : switch_of(split, "split")};
}

Asked asked_by(const Request& request, bool splits) {
  if (request.content_type == "application/json") return asked_by_json(request.body, splits);
  if (request.content_type == "application/x-www-form-urlencoded" || request.content_type.empty()) {
    require_form(request.body);
    return asked_by_form(parse_form(request.body), splits);
  }
  throw RequestError(415, "expected the Content-Type application/json or application/x-www-form-urlencoded");
}

/// The texts of a request while their sentences are translated.
struct Progress {
  Asked asked;
  std::vector<SplitText> texts;
  std::vector<TranslatedLine> translated;
  std::string src_lang;

  Response response() const {
    ordered_json best = ordered_json::array(), others = ordered_json::array(), languages = ordered_json::array();
    std::span<const TranslatedLine> left = translated;
    for (const SplitText& text : texts) {
      const TranslatedLine whole = text.joined(left.first(text.size()));
      left = left.subspan(text.size());
      best.push_back(whole.translations.front().text);
      ordered_json& of_text = others.emplace_back(ordered_json::array());
      for (size_t rank = 1; rank < whole.translations.size(); ++rank) of_text.push_back(whole.translations[rank].text);
      languages.push_back({{"confidence", 0}, {"language", src_lang}});
    }
    ordered_json answer = {{"translatedText", asked.is_list ? best : best.front()}};
    if (asked.alternatives > 0) answer["alternatives"] = asked.is_list ? others : others.front();
    if (asked.source == "auto") answer["detectedLanguage"] = asked.is_list ? languages : languages.front();
    return {200, "application/json", json_text(answer) + "\n"};
  }
};

ordered_json language_json(const std::string& code) {
  return {{"code", code}, {"name", language_name(code)}};
}

}  // namespace

Response languages_response(const Api& api) {
  std::map<std::string, std::set<std::string>> targets;
  for (const ServedModelPtr& model : api.catalog.models()) {
    targets[model->src_lang].insert(model->tgt_lang);
    targets[model->tgt_lang];
  }
  ordered_json list = ordered_json::array();
  for (const auto& [code, to] : targets) {
    ordered_json one = language_json(code);
    one["targets"] = to;
    list.push_back(std::move(one));
  }
  return {200, "application/json", json_text(list) + "\n"};
}

Response settings_response(const Api& api) {
  const ServedModelPtr first = api.catalog.models().front();
  const ordered_json settings = {{"apiKeys", api.clients.need_keys()},
                                 {"charLimit", api.most_characters},
                                 {"filesTranslation", false},
                                 {"frontendTimeout", 500},
                                 {"keyRequired", api.clients.need_keys()},
                                 {"language", {{"source", language_json(first->src_lang)}, {"target", language_json(first->tgt_lang)}}},
                                 {"suggestions", false},
                                 {"supportedFilesFormat", ordered_json::array()}};
  return {200, "application/json", json_text(settings) + "\n"};
}

void answer_libretranslate(const Api& api, const ExchangePtr& exchange) {
  const auto progress = std::make_shared<Progress>();
  progress->asked = asked_by(exchange->request, api.splits);
  const Asked& asked = progress->asked;
  Wanted wanted;
  wanted.client = api.clients.client_of(exchange->request, asked.key);
  const ServedModelPtr model = api.catalog.find(asked.source, asked.target);
  progress->src_lang = model->src_lang;
  wanted.n_best = asked.alternatives + 1;
  require_n_best(*model, wanted.n_best, "alternatives");
  api.count_characters(*exchange, asked.texts);
  progress->texts.reserve(asked.texts.size());
  const TextKind kind{asked_format(asked.format), asked.splits};
  for (const std::string& text : asked.texts) progress->texts.push_back(add_text(*model, text, kind, wanted));
  api.translate(
      *exchange, model, wanted, [progress](size_t, const TranslatedLine& line, const Attentions&) { progress->translated.push_back(line); },
      [progress, exchange](const std::string& error) {
        exchange->answer(error.empty() ? progress->response() : failure_response(exchange->request));
      });
}

}  // namespace lacuna::serve

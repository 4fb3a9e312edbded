#include <algorithm>
#include <utility>

#include "base/spelling.h"
#include "run/translate_text.h"
#include "serve/api.h"
#include "serve/form.h"
#include "serve/languages.h"

namespace lacuna::serve {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostTranslations = 100;   // of a line
constexpr int64_t kMostToLookAtOnce = 2000;  // characters of a request whose attention is wanted, which takes megabytes

/// Returns the lines of a body, which may lack the last line break.
std::vector<std::string> lines_of(const std::string& body) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    lines.push_back(body.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TranslationFormat format_of(const Form& query, bool splits) {
  const std::vector<std::string> names = {"source", "target", "n_best", "alignment", "split", "format", "tokens", "attention"};
  for (const auto& [name, value] : query)
    if (!std::ranges::count(names, name)) throw RequestError(400, unknown_name("the query", name, names));
  if (const std::string alignment = value_of(query, "alignment", "word"); alignment != "word")
    throw RequestError(400, "alignment is not known; expected word");
  if (query.contains("split")) splits = switch_of(query.at("split"), "split");
  if (value_of(query, "format") == "html") splits = true;
  return {.json = true,
          .n_best = query.contains("n_best"),
          .alignment = query.contains("alignment"),
          .paragraphs = splits,
          .tokens = switch_of(value_of(query, "tokens", "false"), "tokens")};
}

/// Throws LineError for a line that asks for another language than the request. Other words in such fields are of the user's own.
void require_same_language(const ordered_json& fields, const char* key, const std::string& language, const std::string& place) {
  const auto found = fields.find(key);
  if (found == fields.end() || !found->is_string()) return;
  const auto code = found->get<std::string>();
  constexpr size_t kLongestCode = 10;  // zh_Hans_CN
  const bool is_code = code.size() <= kLongestCode && language_name(code) != code;
  if (!is_code || language_of(code) == language_of(language)) return;
  throw LineError("with wrong JSON", place + ": \"" + key + "\" is \"" + code + "\", and all lines of a request share " + key +
                                         ", which is " + language + ": take it out of the line, and ask by " + key + "=" + code +
                                         " in the query. A field of your own may have another name");
}

/// The lines of a request while their sentences are translated; each is answered as soon as all of its sentences are there.
class Answer {
 public:
  Answer(ExchangePtr exchange, const TranslationFormat& format, bool has_attention)
      : exchange_(std::move(exchange)), format_(format), has_attention_(has_attention) {}

  /// Reads the body. Throws RequestError for a line that is wrong.
  void read(const std::string& body, const ServedModel& model) {
    for (const std::string& text : lines_of(body)) {
      InputLine& line = lines_.emplace_back();
      line.input.id = std::ssize(lines_) - 1;
      try {
        const std::string place = "line " + std::to_string(lines_.size());
        parse_input_line(text, place, format_, line);
        require_same_language(line.fields, "source", model.src_lang, place);
        require_same_language(line.fields, "target", model.tgt_lang, place);
      } catch (const LineError& error) {
        throw RequestError(400, error.what());
      }
    }
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    texts.reserve(2 * lines_.size());
    for (const InputLine& line : lines_) texts.insert(texts.end(), {line.input.text, line.input.prefix});
    return texts;
  }
  /// Appends what is to be translated.
  void append_to(Wanted& wanted, const ServedModel& model, DocumentFormat format) {
    texts_.reserve(lines_.size());
    wanted.has_tokens = format_.tokens || std::ranges::any_of(lines_, &InputLine::wants_tokens);
    for (const InputLine& line : lines_)
      texts_.push_back(add_text(model, line.input.text, {format, format_.paragraphs}, wanted, line.input, line.terms));
  }

  void add(const TranslatedLine& sentence, const Attentions& attention) {
    sentences_.push_back(sentence);
    attentions_.push_back(attention);
    if (sentences_.size() < texts_[next_].size()) return;
    begin_once();
    const auto add_attention = [this](size_t rank, ordered_json& translation) {
      if (!has_attention_) return;
      translation["attention"] = ordered_json::array();
      for (const Attentions& one : attentions_) translation["attention"].push_back(attention_json(one[rank < one.size() ? rank : 0].get()));
    };
    exchange_->send(format_translations(lines_[next_], texts_[next_].joined(sentences_), format_, add_attention));
    sentences_.clear();
    attentions_.clear();
    ++next_;
  }
  void end(const std::string& error) {
    begin_once();
    if (!error.empty()) exchange_->send(failure_response(exchange_->request).body);
    exchange_->end(error.empty());
  }

 private:
  void begin_once() {
    if (!std::exchange(has_begun_, true)) exchange_->begin({200, "application/x-ndjson", ""});
  }

  const ExchangePtr exchange_;
  const TranslationFormat format_;
  const bool has_attention_;
  std::vector<InputLine> lines_;
  std::vector<SplitText> texts_;           // of each line
  std::vector<TranslatedLine> sentences_;  // of the line that is answered next, as far as they are there
  std::vector<Attentions> attentions_;     // of these
  size_t next_ = 0;
  bool has_begun_ = false;
};

}  // namespace

void answer_json_lines(const Api& api, const ExchangePtr& exchange) {
  const Request& request = exchange->request;
  Wanted wanted;
  wanted.client = api.clients.client_of(request, "");
  TranslationFormat format = format_of(request.query, api.splits);
  const ServedModelPtr model = api.catalog.find(value_of(request.query, "source", "auto"), value_of(request.query, "target"));
  wanted.n_best = number_of(value_of(request.query, "n_best", "1"), "n_best", kMostTranslations);
  if (wanted.n_best == 0) throw RequestError(400, "n_best is 0; expected 1 or more");
  require_n_best(*model, wanted.n_best, "n_best");
  wanted.is_aligned = format.alignment;
  format.longest = model->longest;
  format.lines = {model->options, /*are_bounded=*/true};
  format.lines.common.n_best = wanted.n_best;
  format.tgt = model->vocabularies.tgt;
  require_text(request.body, "the body");
  wanted.has_attention = format.attention = switch_of(value_of(request.query, "attention", "false"), "attention");
  const auto answer = std::make_shared<Answer>(exchange, format, wanted.has_attention);
  answer->read(request.body, *model);
  api.count_characters(*exchange, answer->texts());
  if (wanted.has_attention && exchange->characters > kMostToLookAtOnce)
    throw RequestError(413, "the request has " + std::to_string(exchange->characters) + " characters; attention is given of " +
                                std::to_string(kMostToLookAtOnce) + " at a time");
  answer->append_to(wanted, *model, asked_format(value_of(request.query, "format", "text")));
  api.translate(
      *exchange, model, wanted,
      [answer](size_t, const TranslatedLine& sentence, const Attentions& attention) { answer->add(sentence, attention); },
      [answer](const std::string& error) { answer->end(error); });
}

}  // namespace lacuna::serve

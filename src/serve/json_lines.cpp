#include <utility>

#include "run/translate_text.h"
#include "serve/api.h"
#include "serve/form.h"

namespace lacuna::serve {
namespace {

constexpr int64_t kMostTranslations = 100;  // of a line

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

TranslationFormat format_of(const Form& query) {
  for (const auto& [name, value] : query)
    if (name != "source" && name != "target" && name != "n_best" && name != "alignment")
      throw RequestError(400, "the query has a name that is not known; expected source, target, n_best, alignment");
  if (const std::string alignment = value_of(query, "alignment", "word"); alignment != "word")
    throw RequestError(400, "alignment is not known; expected word");
  return {.json = true, .n_best = query.contains("n_best"), .alignment = query.contains("alignment")};
}

}  // namespace

void answer_json_lines(const Api& api, const ExchangePtr& exchange) {
  const Request& request = exchange->request;
  Wanted wanted;
  wanted.client = api.clients.client_of(request, "");
  const TranslationFormat format = format_of(request.query);
  const ServedModelPtr model = api.catalog.find(value_of(request.query, "source", "auto"), value_of(request.query, "target"));
  wanted.n_best = number_of(value_of(request.query, "n_best", "1"), "n_best", kMostTranslations);
  if (wanted.n_best == 0) throw RequestError(400, "n_best is 0; expected 1 or more");
  require_n_best(*model, wanted.n_best, "n_best");
  wanted.is_aligned = format.alignment;
  require_text(request.body, "the body");
  const auto lines = std::make_shared<std::vector<InputLine>>();
  for (const std::string& text : lines_of(request.body)) {
    InputLine& line = lines->emplace_back();
    line.input.id = std::ssize(*lines) - 1;
    try {
      parse_input_line(text, "line " + std::to_string(lines->size()), format, line);
    } catch (const LineError& error) {
      throw RequestError(400, error.what());
    }
    wanted.lines.push_back(line.input);
  }
  const auto begin = [exchange, has_begun = false]() mutable {
    if (!std::exchange(has_begun, true)) exchange->begin({200, "application/x-ndjson", ""});
  };
  const auto begin_once = std::make_shared<std::function<void()>>(begin);
  api.translate(
      *exchange, model, wanted,
      [exchange, lines, format, begin_once](size_t i, const TranslatedLine& line) {
        (*begin_once)();
        exchange->send(format_translations((*lines)[i], line, format));
      },
      [exchange, begin_once](const std::string& error) {
        (*begin_once)();
        if (!error.empty()) exchange->send(failure_response().body);
        exchange->end(error.empty());
      });
}

}  // namespace lacuna::serve

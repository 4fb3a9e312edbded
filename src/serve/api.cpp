#include "serve/api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/spelling.h"

namespace lacuna::serve {

int64_t characters_of(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void Api::count_characters(Exchange& exchange, const std::vector<std::string>& texts) const {
  for (const std::string& text : texts) exchange.characters += characters_of(text);
  if (exchange.characters > most_characters)
    throw RequestError(413, "the request has " + std::to_string(exchange.characters) + " characters; expected at most " +
                                std::to_string(most_characters) + " at a time");
}

void Api::translate(Exchange& exchange, const ServedModelPtr& model, const Wanted& wanted, TranslationJob::OnLine on_line,
                    TranslationJob::OnEnd on_end) const {
  exchange.lines = std::ssize(wanted.lines);
  clients.charge(wanted.client, exchange.characters);
  try {
    TranslationJob::start(model, cache, exchange, wanted, std::move(on_line), std::move(on_end));
  } catch (const RequestError&) {
    clients.charge(wanted.client, -exchange.characters);
    throw;
  }
}

SplitText add_text(const ServedModel& model, const std::string& text, const TextKind& kind, Wanted& wanted, TranslationInput line,
                   const document::Terms& terms) {
  const bool is_split = kind.splits || kind.format != DocumentFormat::kText;
  const document::Terms* const some[] = {&terms};
  std::unique_ptr<document::Document> document;
  if (kind.format == DocumentFormat::kText)
    document = document::plain_document(text, is_split ? model.splitting.get() : nullptr, some);
  else if (terms.is_empty())
    document = make_document(kind.format, text, *model.splitting);
  else
    throw RequestError(400, "terms go with plain text alone; expected format text, or no terms");
  SplitText added(std::move(document), std::move(line));
  added.append_to(wanted.lines);
  wanted.is_aligned = wanted.is_aligned || added.needs_links();
  return added;
}

DocumentFormat asked_format(const std::string& name) {
  if (name != "text" && name != "html") throw RequestError(400, "format is not known; expected text or html");
  return format_named(name);
}

std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kShown = 60;  // bytes, perhaps of half a character, which JSON replaces
  return what + " has \"" + name.substr(0, kShown) + "\", a name that is not known; expected " + join(known) + did_you_mean(name, known);
}

bool switch_of(const std::string& text, const std::string& name) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw RequestError(400, name + " is not known; expected true or false");
}

Response error_response(const Request& request, int status, const std::string& message, int retry_after) {
  const char* const field = request.path.starts_with("/v2/") ? "message" : "error";
  Response response{status, "application/json", json_text(nlohmann::ordered_json::object({{field, message}})) + "\n"};
  if (retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(retry_after));
  return response;
}

Response failure_response(const Request& request) {
  return error_response(request, 500, "the translation has failed; the log of the service says why");
}

void require_n_best(const ServedModel& model, int64_t wanted, const std::string& name) {
  if (wanted <= model.options.beam_size) return;
  throw RequestError(400, name + ": " + std::to_string(wanted) + " translations are wanted, and this model's beam has " +
                              std::to_string(model.options.beam_size));
}

}  // namespace lacuna::serve

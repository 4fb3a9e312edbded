#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run/split_text.h"
#include "run/translate_document.h"
#include "serve/catalog.h"
#include "serve/clients.h"
#include "serve/exchange.h"
#include "serve/sentence_cache.h"
#include "serve/translation_job.h"

namespace lacuna::serve {

using ExchangePtr = std::shared_ptr<Exchange>;

/// What every API of the service translates with. Its functions are called by the thread of the connections alone.
struct Api {
  Catalog& catalog;
  Clients& clients;
  SentenceCache& cache;
  int64_t most_characters;  ///< of one request
  bool splits;              ///< texts are split into sentences unless a request says otherwise

  /// Counts the characters of what a request wants translated. To be called before the texts are looked at. Throws RequestError 413 if
  /// they are too many.
  void count_characters(Exchange& exchange, const std::vector<std::string>& texts) const;
  /// Translates the lines of a request whose characters are counted, if they are not more than the client may send now: see
  /// TranslationJob. Throws RequestError.
  void translate(Exchange& exchange, const ServedModelPtr& model, const Wanted& wanted, TranslationJob::OnLine on_line,
                 TranslationJob::OnEnd on_end) const;
};

/// How the texts of a request are to be taken.
struct TextKind {
  DocumentFormat format = DocumentFormat::kText;
  bool splits = true;  ///< of plain text: false = each line is a sentence
};

/// Adds a text to what a request wants translated. `line` has its prefix. Throws RequestError for terms of what is not plain text.
SplitText add_text(const ServedModel& model, const std::string& text, const TextKind& kind, Wanted& wanted, TranslationInput line = {},
                   const document::Terms& terms = {});

/// Reads the name of a format. Throws RequestError.
DocumentFormat asked_format(const std::string& name);

/// Returns the error message for a name that `what`, such as "the query", has and that is none of those known.
std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& known);

/// Reads "true" or "1", "false" or "0". Throws RequestError, which calls it `name`, for anything else.
bool switch_of(const std::string& text, const std::string& name);

/// Returns the characters of a text.
int64_t characters_of(const std::string& text);

/// Returns a response of the status with {"error": message}, or where a client of DeepL has asked {"message": message}.
Response error_response(const Request& request, int status, const std::string& message, int retry_after = 0);

/// Returns the response to a request whose translation has failed.
Response failure_response(const Request& request);

/// Returns the most translations that may be asked of a model. Throws RequestError, which calls it `name`, if `wanted` is more.
void require_n_best(const ServedModel& model, int64_t wanted, const std::string& name);

// LibreTranslate's API (libretranslate.cpp).

/// Returns each language with those it can be translated to.
Response languages_response(const Api& api);
/// Returns what LibreTranslate's web page asks before it shows itself.
Response settings_response(const Api& api);
/// Answers POST /translate: JSON or a form, a text or a list of texts. Throws RequestError.
void answer_libretranslate(const Api& api, const ExchangePtr& exchange);

// Lacuna's own API (json_lines.cpp).

/// Answers POST /v1/translate: JSON lines in and out, as `lacuna translate --json` has them; each goes out as it is done. Throws
/// RequestError.
void answer_json_lines(const Api& api, const ExchangePtr& exchange);

// DeepL's API (deepl.cpp).

/// Answers POST /v2/translate: JSON or a form, a list of texts. Throws RequestError.
void answer_deepl(const Api& api, const ExchangePtr& exchange);
/// Returns the languages that can be translated from, or to. Throws RequestError.
Response deepl_languages_response(const Api& api, const Request& request);
/// Returns how many characters the client has had translated. Throws RequestError.
Response deepl_usage_response(const Api& api, const Request& request);

// The page (page.cpp).

/// Returns the page, with these texts and this message in it.
struct PageContents {
  std::string pair, text = {}, translation = {}, message = {};
};
Response page_response(const Api& api, const PageContents& contents);
/// Answers the page's form where there is no JavaScript.
void answer_page_form(const Api& api, const ExchangePtr& exchange);

}  // namespace lacuna::serve

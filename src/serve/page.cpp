#include <spdlog/fmt/fmt.h>

#include <random>

#include "serve/api.h"
#include "serve/form.h"
#include "serve/languages.h"
#include "serve/page_parts.h"

namespace lacuna::serve {
namespace {

/// Returns a word that nobody can guess, by which the page's own script and style are told from others.
std::string new_nonce() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", device());
  return nonce;
}

/// Returns the choice of language pairs, as options of a select element.
std::string pair_options(const Api& api, const std::string& chosen) {
  std::string options;
  for (const ServedModelPtr& model : api.catalog.models()) {
    const std::string pair = model->src_lang + "|" + model->tgt_lang;
    options += fmt::format("<option value=\"{}\" data-beam=\"{}\"{}>{} to {}</option>", escaped_html(pair), model->options.beam_size,
                           pair == chosen ? " selected" : "", escaped_html(language_name(model->src_lang)),
                           escaped_html(language_name(model->tgt_lang)));
  }
  return options;
}

/// Returns the text with each {{NAME}} replaced by its value, which is not looked at again.
std::string filled_in(const std::string& page, const std::map<std::string, std::string>& values) {
  std::string html;
  for (size_t begin = 0; begin < page.size();) {
    const size_t open = std::min(page.find("{{", begin), page.size()), close = page.find("}}", open);
    html += page.substr(begin, open - begin);
    if (open == page.size()) break;
    html += values.at(page.substr(open + 2, close - open - 2));
    begin = close + 2;
  }
  return html;
}

/// The form of the page that was sent.
struct SentForm {
  Form form;
  PageContents contents;
};

}  // namespace

Response page_response(const Api& api, const PageContents& contents) {
  const std::string nonce = new_nonce();
  std::map<std::string, std::string> values = page_parts();
  values["NONCE"] = nonce;
  values["PAIRS"] = pair_options(api, contents.pair);
  values["TEXT"] = escaped_html(contents.text);
  values["TRANSLATION"] = escaped_html(contents.translation);
  values["MESSAGE"] = escaped_html(contents.message);
  values["MOST"] = std::to_string(api.most_characters);
  values["NO_KEY"] = api.clients.need_keys() ? "" : "hidden";
  Response response{200, "text/html; charset=utf-8", filled_in(values.at("PAGE"), values)};
  response.headers = {{"Content-Security-Policy",
                       fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src data:; connect-src "
                                   "'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
                                   nonce)},
                      {"Referrer-Policy", "no-referrer"}};
  return response;
}

void answer_page_form(const Api& api, const ExchangePtr& exchange) {
  const auto sent = std::make_shared<SentForm>();
  PageContents& contents = sent->contents;
  // What an answer needs of the API is taken here: it is made by another thread.
  const auto show = [api, sent, exchange] { exchange->answer(page_response(api, sent->contents)); };
  try {
    sent->form = parse_form(exchange->request.body);
    contents.pair = value_of(sent->form, "pair");
    contents.text = value_of(sent->form, "q");
    const size_t border = std::min(contents.pair.find('|'), contents.pair.size());
    const ServedModelPtr model =
        api.catalog.find(contents.pair.substr(0, border), contents.pair.substr(std::min(border + 1, contents.pair.size())));
    api.count_characters(*exchange, {contents.text});
    Wanted wanted;
    wanted.client = api.clients.client_of(exchange->request, value_of(sent->form, "api_key"));
    const auto text = std::make_shared<SplitText>(add_text(*model, contents.text, {DocumentFormat::kText, api.splits}, wanted));
    const auto translated = std::make_shared<std::vector<TranslatedLine>>();
    api.translate(
        *exchange, model, wanted, [translated](size_t, const TranslatedLine& line, const Attentions&) { translated->push_back(line); },
        [show, sent, text, translated](const std::string& error) {
          if (error.empty()) sent->contents.translation = text->joined(*translated).translations.front().text;
          if (!error.empty()) sent->contents.message = "The translation has failed.";
          show();
        });
  } catch (const RequestError& error) {
    contents.message = error.what();
    Response response = page_response(api, contents);
    response.status = error.status();
    exchange->answer(std::move(response));
  }
}

}  // namespace lacuna::serve

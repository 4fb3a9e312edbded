#include "serve/service.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json_text.h"
#include "base/log.h"

namespace lacuna::serve {
namespace {

using nlohmann::ordered_json;

/// Where a service tells programs of other origins, such as browser extensions, what they may do.
void allow_other_origins(Response& response) {
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
}

}  // namespace

/// A path with what answers it.
struct Service::Route {
  const char *method, *path;
  void (*answer)(Service& service, const ExchangePtr& exchange);
  bool is_of_page = false;

  static const std::array<Route, 13>& all() {
    static const std::array<Route, 13> routes = {{
        {"POST", "/translate", [](Service& service, const ExchangePtr& exchange) { answer_libretranslate(service.api_, exchange); }},
        {"POST", "/v1/translate", [](Service& service, const ExchangePtr& exchange) { answer_json_lines(service.api_, exchange); }},
        {"POST", "/v2/translate", [](Service& service, const ExchangePtr& exchange) { answer_deepl(service.api_, exchange); }},
        {"GET", "/v2/languages",
         [](Service& service, const ExchangePtr& exchange) {
           exchange->answer(deepl_languages_response(service.api_, exchange->request));
         }},
        {"POST", "/v2/languages",
         [](Service& service, const ExchangePtr& exchange) {
           exchange->answer(deepl_languages_response(service.api_, exchange->request));
         }},
        {"GET", "/v2/usage",
         [](Service& service, const ExchangePtr& exchange) { exchange->answer(deepl_usage_response(service.api_, exchange->request)); }},
        {"GET", "/languages", [](Service& service, const ExchangePtr& exchange) { exchange->answer(languages_response(service.api_)); }},
        {"GET", "/frontend/settings",
         [](Service& service, const ExchangePtr& exchange) { exchange->answer(settings_response(service.api_)); }},
        {"POST", "/detect",
         [](Service&, const ExchangePtr&) { throw RequestError(501, "languages are not detected; name the source language"); }},
        {"GET", "/health",
         [](Service& service, const ExchangePtr& exchange) {
           exchange->answer({service.is_draining ? 503 : 200, "application/json",
                             json_text(ordered_json::object({{"status", service.is_draining ? "draining" : "ok"}})) + "\n"});
         }},
        {"GET", "/metrics", [](Service& service, const ExchangePtr& exchange) { exchange->answer(service.metrics_response()); }},
        {"GET", "/", [](Service& service, const ExchangePtr& exchange) { exchange->answer(page_response(service.api_, {})); }, true},
        {"POST", "/", [](Service& service, const ExchangePtr& exchange) { answer_page_form(service.api_, exchange); }, true},
    }};
    return routes;
  }
};

Service::Service(Catalog& catalog, const ServiceOptions& options)
    : catalog_(catalog),
      options_(options),
      clients_(options.key_file, options.rate),
      cache_(options.cache_bytes),
      api_{catalog_, clients_, cache_, options.most_characters, options.splits} {}

/// Returns the route of a request. Throws RequestError 404 or 405.
const Service::Route* Service::route_of(const Request& request) const {
  std::string methods;
  for (const Route& route : Route::all()) {
    if (request.path != route.path || (route.is_of_page && !options_.has_page)) continue;
    if (request.method == route.method) return &route;
    methods += (methods.empty() ? "" : " or ") + std::string(route.method);
  }
  if (methods.empty())
    throw RequestError(404, "there is nothing at this path; expected /translate, /v1/translate, /v2/translate, /languages or /health");
  throw RequestError(405, "this path takes " + methods + " alone");
}

void Service::route(const ExchangePtr& exchange) {
  if (exchange->request.method == "OPTIONS") {
    Response nothing{204, "", ""};
    allow_other_origins(nothing);
    return exchange->answer(std::move(nothing));
  }
  const Route* const route = route_of(exchange->request);
  exchange->route = route->path;
  constexpr int kRestart_s = 5;
  if (is_draining && route->path != std::string("/health"))
    throw RequestError(503, "the service is being stopped; ask again later", kRestart_s);
  route->answer(*this, exchange);
}

void Service::handle(const ExchangePtr& exchange) {
  try {
    route(exchange);
  } catch (const RequestError& error) {
    exchange->answer(error_response(exchange->request, error.status(), error.what(), error.retry_after()));
  } catch (const std::exception& error) {
    log_warning("a request has failed: {}", error.what());
    exchange->answer(error_response(exchange->request, 500, "the service has failed; its log says why"));
  }
}

void Service::finish(const Exchange& exchange, int status, double seconds) {
  metrics_.add_request(exchange, status, seconds);
  if (!options_.logs_requests) return;
  log_event("request", {{"client", exchange.request.address},
                        {"route", exchange.route},
                        {"status", status},
                        {"seconds", std::round(seconds * 1e6) / 1e6},
                        {"bytes", exchange.request.body.size()},
                        {"lines", exchange.lines},
                        {"characters", exchange.characters}});
}

void Service::reload(bool all) {
  if (all && clients_.need_keys()) {
    try {
      clients_.reload();
    } catch (const std::exception& error) {
      log_event("reload", {{"error", error.what()}, {"kept", "the former keys"}});
    }
  }
  catalog_.reload(all, [this](const ServedModel& former, const std::string& error) {
    metrics_.add_reload(error.empty());
    ordered_json fields = {{"pair", former.src_lang + "-" + former.tgt_lang}};
    if (!error.empty()) fields.update({{"error", error}, {"kept", "the former model"}});
    log_event("reload", fields);
  });
}

Response Service::metrics_response() const {
  return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text({catalog_.load(), cache_.counts(), connections})};
}

void log_event(const std::string& event, const ordered_json& fields) {
  const auto now = std::chrono::system_clock::now();
  ordered_json line = {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)))},
                       {"event", event}};
  line.update(fields);
  const std::string text = json_text(line) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace lacuna::serve

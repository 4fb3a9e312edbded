#include "serve/run_service.h"

#include "base/error.h"

namespace lacuna::serve {

void run_service(const ServiceSettings& settings) {
  Catalog catalog(settings.places, settings.loading);
  Service service(catalog, settings.options);
  HttpServer server(settings.listen, service, catalog, settings.limits);
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const ServedModelPtr& model : catalog.models()) models.push_back(model->src_lang + "-" + model->tgt_lang);
  log_event("ready", {{"listen", server.address()}, {"models", models}});
  const bool is_answered = server.run(settings.drain_seconds, settings.watch_seconds);
  catalog.finish();
  if (!is_answered) throw MachineError("stopped before all requests were answered");
}

}  // namespace lacuna::serve

#pragma once

#include <string>
#include <vector>

#include "serve/catalog.h"
#include "serve/http_server.h"
#include "serve/service.h"

namespace lacuna::serve {

/// All that a service is told at its start.
struct ServiceSettings {
  std::vector<ModelPlace> places;
  ModelLoading loading;
  ServiceOptions options;
  ConnectionLimits limits;
  std::string listen;
  int64_t drain_seconds = 0;
  int64_t watch_seconds = 0;  ///< between looks whether a model was replaced; 0 = never
};

/// Loads the models and serves until SIGTERM or SIGINT has come and what was taken is answered. Throws MachineError if that took more than
/// drain_seconds or a second signal came, and whatever loading and listening throw.
void run_service(const ServiceSettings& settings);

}  // namespace lacuna::serve

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/api.h"
#include "serve/metrics.h"

namespace lacuna::serve {

struct ServiceOptions {
  std::string key_file;
  int64_t rate = 0;  ///< characters a minute for each key or address; 0 = as many as they like
  int64_t most_characters = 0;
  int64_t cache_bytes = 0;
  bool splits = true;  ///< texts are split into sentences unless a request says otherwise
  bool has_page = true;
  bool logs_requests = true;
};

/// Answers requests: knows the paths, and what is counted and logged of each. To be used by the thread of the connections.
class Service {
 public:
  Service(Catalog& catalog, const ServiceOptions& options);

  /// Answers a request, now or later. Never throws what a request is to blame for.
  void handle(const ExchangePtr& exchange);
  /// Counts and logs a request that was answered with `status`, 0 = the client went away. The line of the log has none of its text.
  void finish(const Exchange& exchange, int status, double seconds);
  /// Loads keys and models anew: all models, or those whose checkpoint is another one now. Errors are logged.
  void reload(bool all);

  int64_t connections = 0;  ///< open ones
  bool is_draining = false;

 private:
  struct Route;
  const Route* route_of(const Request& request) const;
  void route(const ExchangePtr& exchange);
  Response metrics_response() const;

  Catalog& catalog_;
  ServiceOptions options_;
  Clients clients_;
  SentenceCache cache_;
  Metrics metrics_;
  Api api_;
};

/// Writes one line of JSON to stderr: the time, "event", and these fields. Any thread may call it.
void log_event(const std::string& event, const nlohmann::ordered_json& fields);

}  // namespace lacuna::serve

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/service.h"

namespace lacuna::serve {

/// Bounds on connections and what they send.
struct ConnectionLimits {
  int64_t connections = 0;                        ///< open at a time
  int64_t body_bytes = 0;                         ///< of a request
  int64_t request_seconds = 0;                    ///< for a request's translation
  int64_t idle_seconds = 0;                       ///< between requests, for the header of one, and for its body
  std::vector<std::string> trusted_proxies = {};  ///< addresses and networks that are believed when they say for whom they ask
};

/// The HTTP server: takes connections and hands their requests to the service. Everything runs on the thread that calls run().
class HttpServer {
 public:
  /// Listens at "ADDRESS:PORT"; port 0 = one that is free. Throws UsageError for what is no address, MachineError if it cannot listen
  /// there. Throws as TrustedProxies does.
  HttpServer(const std::string& address, Service& service, Catalog& catalog, const ConnectionLimits& limits);
  ~HttpServer();

  /// Returns the address that it listens at.
  std::string address() const;
  /// Serves until SIGTERM or SIGINT has come and what was taken is answered, or `drain_seconds` are over. SIGHUP loads models and keys
  /// anew; every `watch_seconds`, models whose checkpoint is another one now are loaded anew (0 = never). Returns true if all was answered.
  bool run(int64_t drain_seconds, int64_t watch_seconds);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lacuna::serve

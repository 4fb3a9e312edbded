#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "search/live_translator.h"
#include "serve/exchange.h"
#include "serve/sentence_cache.h"

namespace lacuna::serve {

/// What the service has done, as Prometheus reads it. Any thread may use it.
class Metrics {
 public:
  /// Counts an answered request; 0 = the client went away before.
  void add_request(const Exchange& exchange, int status, double seconds);
  void add_reload(bool has_succeeded);

  /// What other parts of the service know about themselves.
  struct Gauges {
    LiveTranslator::Load load;
    SentenceCache::Counts cache;
    int64_t connections;
  };
  /// Returns the text of /metrics (Prometheus's exposition format, version 0.0.4).
  std::string text(const Gauges& gauges) const;

 private:
  static constexpr std::array kBorders = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0};  // seconds

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by route and status
  std::array<int64_t, kBorders.size()> within_ = {};         // translated requests that took at most that long
  int64_t timed_ = 0, characters_ = 0, reloads_ = 0, failed_reloads_ = 0;
  double seconds_ = 0;
};

}  // namespace lacuna::serve

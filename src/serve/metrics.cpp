#include "serve/metrics.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <fstream>

namespace lacuna::serve {
namespace {

std::string head(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP lacuna_{0} {2}\n# TYPE lacuna_{0} {1}\n", name, type, help);
}

std::string counter(const char* name, const char* help, int64_t value) {
  return head(name, "counter", help) + fmt::format("lacuna_{} {}\n", name, value);
}

std::string gauge(const char* name, const char* help, int64_t value) {
  return head(name, "gauge", help) + fmt::format("lacuna_{} {}\n", name, value);
}

/// Returns the bytes of memory that the process holds.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

void Metrics::add_request(const Exchange& exchange, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{exchange.route, status}];
  if (exchange.lines == 0 || status != 200) return;
  characters_ += exchange.characters;
  ++timed_;
  seconds_ += seconds;
  for (size_t i = 0; i < kBorders.size(); ++i) within_[i] += seconds <= kBorders[i] ? 1 : 0;
}

void Metrics::add_reload(bool has_succeeded) {
  const std::lock_guard lock(mutex_);
  ++(has_succeeded ? reloads_ : failed_reloads_);
}

std::string Metrics::text(const Gauges& gauges) const {
  const std::lock_guard lock(mutex_);
  std::string text = head("requests_total", "counter", "Requests by route and status; status 0: the client went away.");
  for (const auto& [what, number] : requests_)
    text += fmt::format("lacuna_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", what.first, what.second, number);
  text += head("request_seconds", "histogram", "Seconds from the whole request to the whole answer, of those that were translated.");
  for (size_t i = 0; i < kBorders.size(); ++i)
    text += fmt::format("lacuna_request_seconds_bucket{{le=\"{:g}\"}} {}\n", kBorders[i], within_[i]);
  text +=
      fmt::format("lacuna_request_seconds_bucket{{le=\"+Inf\"}} {0}\nlacuna_request_seconds_sum {1}\nlacuna_request_seconds_count {0}\n",
                  timed_, seconds_);
  text += counter("source_characters_total", "Characters of requests that were translated.", characters_);
  text += counter("lines_total", "Lines that were translated, without those from the cache.", gauges.load.translated_lines);
  text += counter("tokens_total", "Target tokens of these lines.", gauges.load.tokens);
  text += counter("abandoned_lines_total", "Lines that nobody waited for any more.", gauges.load.abandoned_lines);
  text += counter("failed_lines_total", "Lines whose translation failed.", gauges.load.failed_lines);
  text += gauge("waiting_lines", "Lines in the queue.", gauges.load.waiting_lines);
  text += gauge("waiting_bytes", "Bytes of their text.", gauges.load.waiting_bytes);
  text += gauge("searched_lines", "Lines that are translated now.", gauges.load.searched_lines);
  text += gauge("connections", "Open connections.", gauges.connections);
  text += counter("cache_hits_total", "Lines that the cache knew.", gauges.cache.hits);
  text += counter("cache_misses_total", "Lines that it did not know.", gauges.cache.misses);
  text += gauge("cache_bytes", "Bytes that the cache holds.", gauges.cache.bytes);
  text += counter("reloads_total", "Models that were loaded anew.", reloads_);
  text += counter("failed_reloads_total", "Models that could not be loaded anew.", failed_reloads_);
  text += gauge("resident_bytes", "Memory of the process.", resident_bytes());
  return text;
}

}  // namespace lacuna::serve

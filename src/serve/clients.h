#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "serve/exchange.h"

namespace lacuna::serve {

/// Who may use the service, and how much of it. To be used by one thread.
class Clients {
 public:
  /// `key_file` has a key a line, and behind it, if that client is to have a rate of its own, characters a minute; # begins a comment.
  /// Empty = anybody. `rate` are characters a minute for each key, or without keys for each address; 0 = as many as they like. Throws
  /// DataError.
  Clients(const std::string& key_file, int64_t rate);

  /// Reads the keys anew. Throws DataError, and then leaves them as they are.
  void reload();
  bool need_keys() const { return !file_.empty(); }
  /// Returns the name by which a client takes turns and is charged. Throws RequestError 403 for a key that is not known.
  std::string client_of(const Request& request, const std::string& key_in_body) const;
  /// Counts characters that a client wants translated. Throws RequestError 429 if they are more than its rate allows now.
  void charge(const std::string& client, int64_t characters);
  /// Returns the characters that a key has been charged since the start; without keys, all clients together.
  int64_t characters_of(const std::string& client) const;

 private:
  using Clock = std::chrono::steady_clock;
  /// What a client has left: it fills up to a minute's worth, and a larger request waits for a full one.
  struct Allowance {
    double characters = 0;
    Clock::time_point at;
  };

  std::string file_;
  int64_t rate_;
  std::map<std::string, std::optional<int64_t>> keys_;  // rates, where they have one of their own
  std::map<std::string, Allowance> allowances_;
  std::map<std::string, int64_t> charged_;  // by key; without keys, all of it by ""

  void require_allowed(const std::string& client, int64_t characters);
};

}  // namespace lacuna::serve

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lacuna::serve {

/// Names and values of a query or a form.
using Form = std::map<std::string, std::string>;

/// What a client asks for.
struct Request {
  std::string method, path;   ///< "POST", "/translate"; HEAD is GET here
  Form query = {};            ///< what follows the path's question mark
  std::string content_type;   ///< in lower case, without parameters
  std::string authorization;  ///< the header of this name
  std::string body;
  std::string address;  ///< the client's
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// A request that cannot be answered, with the status that says so. `retry_after` are seconds; 0 = repeating it is of no use.
class RequestError : public Error {
 public:
  RequestError(int status, const std::string& message, int retry_after = 0) : Error(message), status_(status), retry_after_(retry_after) {}
  int status() const { return status_; }
  int retry_after() const { return retry_after_; }

 private:
  int status_, retry_after_;
};

/// A request and the way back to who sent it. Any thread may answer: by answer(), or by begin(), send() as often as needed, and end().
class Exchange {
 public:
  explicit Exchange(Request asked) : request(std::move(asked)) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual void answer(Response response) = 0;
  virtual void begin(Response head) = 0;
  virtual void send(std::string text) = 0;
  /// Ends what begin() began; where it is not `is_whole`, so that the client can tell.
  virtual void end(bool is_whole) = 0;

  const Request request;
  const std::shared_ptr<std::atomic<bool>> is_abandoned = std::make_shared<std::atomic<bool>>(false);  ///< nobody waits any more
  std::string route = "other";        ///< for logs and metrics, which are to show nothing that a client has written
  int64_t lines = 0, characters = 0;  ///< that are translated
};

}  // namespace lacuna::serve

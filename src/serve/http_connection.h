#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "serve/http_server.h"
#include "serve/trusted_proxies.h"

namespace lacuna::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

class HttpConnection;

/// What all connections of a server share.
struct SharedState {
  Service& service;
  Catalog& catalog;
  ConnectionLimits limits;
  TrustedProxies proxies;
  std::set<HttpConnection*> open = {};
  int64_t body_bytes = 0;  ///< that requests in work hold, or have announced
};

/// A connection: reads a request, waits for its answer, writes it, and reads the next one. It lives for as long as an operation on it
/// waits.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(asio::ip::tcp::socket socket, SharedState& shared);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void start() { read_header(); }
  /// Closes the connection if it has not begun to send a request.
  void close_if_idle();
  /// Lets the work for a request go, if there is one, and closes the connection.
  void give_up_if_busy();

 private:
  class OwnExchange;
  using ErrorCode = boost::system::error_code;

  void read_header();
  void on_header(ErrorCode error);
  void read_body();
  void on_request(ErrorCode error);
  void on_bad_request(ErrorCode error);
  void refuse(int status, const std::string& message);
  bool reserve_body();
  void release_body();

  Request request_of_parser() const;
  void notice_leaving();
  void abandon();
  void on_too_late();

  void give_up(int status);
  void write_whole(const Response& response);
  void begin_stream(const Response& head);
  void add_to_stream(const std::string& text);
  void end_stream(bool is_whole);
  std::string header_of(const Response& response, bool is_streamed, size_t body_bytes) const;
  void write_pending();
  void on_written();
  void linger();
  void read_away();

  SharedState& shared_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  asio::steady_timer deadline_;
  std::string address_;
  int64_t reserved_bytes_ = 0;

  std::shared_ptr<Exchange> current_;  // the request that is answered; null while one is read
  int64_t current_number_ = 0;         // its number among the connection's
  Stopwatch since_request_;
  bool is_kept_ = false;                           // the connection serves another request after this
  bool is_head_ = false;                           // only the header of the answer is sent
  bool is_streamed_ = false, is_chunked_ = false;  // of the answer to the current request
  bool is_writing_ = false, is_whole_ = false;     // whole: nothing will be added to `pending_`
  int status_ = 0;
  std::string pending_, written_;  // what is still to be written, and what is being written
  size_t read_away_ = 0;
};

}  // namespace lacuna::serve

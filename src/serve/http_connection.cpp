#include "serve/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <cctype>
#include <cerrno>
#include <cstdio>

#include "serve/form.h"

namespace lacuna::serve {
namespace {

using Tcp = asio::ip::tcp;

constexpr uint32_t kMostHeaderBytes = 16 << 10;
constexpr size_t kMostBufferBytes = 64 << 10;
constexpr int64_t kMostBodyBytes = 256 << 20;  // of all connections together
constexpr size_t kMostReadAway = 256 << 10;    // of what a refused client goes on sending
constexpr std::chrono::seconds kReadAway{2};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return lower;
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

/// Returns the addresses that a request is said to come from: the headers X-Forwarded-For as one.
template <class Message>
std::string forwarded_of(const Message& message) {
  std::string all;
  const auto [begin, end] = message.equal_range("X-Forwarded-For");
  for (auto field = begin; field != end; ++field) all.append(all.empty() ? "" : ",").append(view(field->value()));
  return all;
}

/// Returns the status for a request that could not be read, 0 = there is nobody to tell.
int status_of(const boost::system::error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) return 431;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  return error.category() == make_error_code(http::error::bad_method).category() ? 400 : 0;
}

}  // namespace

/// An exchange of this connection. It may outlive the connection: its answers are then dropped.
class HttpConnection::OwnExchange : public Exchange {
 public:
  OwnExchange(Request asked, HttpConnection& connection, int64_t number)
      : Exchange(std::move(asked)),
        connection_(connection.weak_from_this()),
        executor_(connection.stream_.get_executor()),
        number_(number) {}

  void answer(Response response) override {
    on_connection([response = std::move(response)](HttpConnection& connection) { connection.write_whole(response); });
  }
  void begin(Response head) override {
    on_connection([head = std::move(head)](HttpConnection& connection) { connection.begin_stream(head); });
  }
  void send(std::string text) override {
    on_connection([text = std::move(text)](HttpConnection& connection) { connection.add_to_stream(text); });
  }
  void end(bool is_whole) override {
    on_connection([is_whole](HttpConnection& connection) { connection.end_stream(is_whole); });
  }

 private:
  /// Runs f(connection) on the connection's thread, if it still waits for this exchange.
  template <class F>
  void on_connection(F f) {
    asio::post(executor_, [weak = connection_, number = number_, f = std::move(f)] {
      const auto connection = weak.lock();
      if (connection && connection->current_ && connection->current_number_ == number) f(*connection);
    });
  }

  const std::weak_ptr<HttpConnection> connection_;
  const beast::tcp_stream::executor_type executor_;
  const int64_t number_;
};

HttpConnection::HttpConnection(Tcp::socket socket, SharedState& shared)
    : shared_(shared), stream_(std::move(socket)), buffer_(kMostBufferBytes), deadline_(stream_.get_executor()) {
  ErrorCode error;
  stream_.socket().set_option(Tcp::no_delay(true), error);
  address_ = stream_.socket().remote_endpoint(error).address().to_string();
  shared_.open.insert(this);
  shared_.service.connections = std::ssize(shared_.open);
}

HttpConnection::~HttpConnection() {
  release_body();
  shared_.open.erase(this);
  shared_.service.connections = std::ssize(shared_.open);
}

void HttpConnection::close_if_idle() {
  if (current_ || buffer_.size() > 0 || (parser_ && parser_->got_some())) return;
  ErrorCode error;
  stream_.socket().close(error);
}

void HttpConnection::give_up_if_busy() {
  if (current_) give_up(0);
}

void HttpConnection::read_header() {
  if (shared_.service.is_draining && buffer_.size() == 0) return linger();
  parser_.emplace();
  parser_->header_limit(kMostHeaderBytes);
  parser_->body_limit(static_cast<uint64_t>(shared_.limits.body_bytes));
  stream_.expires_after(std::chrono::seconds(shared_.limits.idle_seconds));
  http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) { self->on_header(error); });
}

void HttpConnection::on_header(ErrorCode error) {
  if (error) return on_bad_request(error);
  if (!reserve_body()) return refuse(503, "too many large requests are being sent; ask again later");
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue") || parser_->is_done()) return read_body();
  static const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(kContinue), [self = shared_from_this()](ErrorCode failure, size_t) {
    if (!failure) self->read_body();
  });
}

void HttpConnection::read_body() {
  stream_.expires_after(std::chrono::seconds(shared_.limits.idle_seconds));
  http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) { self->on_request(error); });
}

/// Counts the bytes that the body may have. Returns false if all bodies together would have too many.
bool HttpConnection::reserve_body() {
  const auto length = parser_->content_length();
  if (!length && !parser_->chunked()) return true;
  const int64_t bytes = length ? static_cast<int64_t>(*length) : shared_.limits.body_bytes;
  if (shared_.body_bytes + bytes > kMostBodyBytes) return false;
  reserved_bytes_ = bytes;
  shared_.body_bytes += bytes;
  return true;
}

void HttpConnection::release_body() {
  shared_.body_bytes -= reserved_bytes_;
  reserved_bytes_ = 0;
}

Request HttpConnection::request_of_parser() const {
  const auto& message = parser_->get();
  Request request;
  request.address = shared_.proxies.client_of(address_, forwarded_of(message));
  request.method = std::string(view(message.method_string()));
  if (is_head_) request.method = "GET";
  const std::string_view target = view(message.target());
  const size_t mark = std::min(target.find('?'), target.size());
  request.path = std::string(target.substr(0, mark));
  request.query = parse_form(target.substr(std::min(mark + 1, target.size())));
  const std::string_view type = view(message[http::field::content_type]);
  request.content_type = lower_case(type.substr(0, std::min(type.find_first_of("; \t"), type.size())));
  request.authorization = std::string(view(message[http::field::authorization]));
  request.body = message.body();
  return request;
}

void HttpConnection::on_request(ErrorCode error) {
  if (error) return on_bad_request(error);
  stream_.expires_never();
  is_kept_ = parser_->get().keep_alive();
  is_head_ = parser_->get().method() == http::verb::head;
  is_chunked_ = parser_->get().version() >= 11;
  is_streamed_ = is_whole_ = false;
  since_request_ = Stopwatch();
  Request request;
  try {
    request = request_of_parser();
  } catch (const RequestError& wrong) {
    return refuse(wrong.status(), wrong.what());
  }
  parser_.reset();
  current_ = std::make_shared<OwnExchange>(std::move(request), *this, ++current_number_);
  notice_leaving();
  deadline_.expires_after(std::chrono::seconds(shared_.limits.request_seconds));
  deadline_.async_wait([self = shared_from_this(), number = current_number_](ErrorCode cancelled) {
    if (!cancelled && self->current_ && self->current_number_ == number) self->on_too_late();
  });
  shared_.service.handle(current_);
}

void HttpConnection::on_bad_request(ErrorCode error) {
  const int status = status_of(error);
  if (status == 413) return refuse(413, "the body is too large; expected at most " + std::to_string(shared_.limits.body_bytes) + " bytes");
  if (status == 431) return refuse(431, "the header is too large; expected at most " + std::to_string(kMostHeaderBytes) + " bytes");
  if (status == 400) return refuse(400, "this is not HTTP: " + error.message());
}

/// Answers what is no request that could be handled, and closes the connection.
void HttpConnection::refuse(int status, const std::string& message) {
  is_kept_ = is_head_ = is_streamed_ = is_whole_ = false;
  constexpr int kPatience = 2;
  Request request;
  request.address = address_;
  current_ = std::make_shared<OwnExchange>(std::move(request), *this, ++current_number_);
  current_->route = "malformed";
  write_whole(error_response(current_->request, status, message, status == 503 ? kPatience : 0));
}

/// Gives the request up as soon as the client has closed the connection.
void HttpConnection::notice_leaving() {
  stream_.socket().async_wait(Tcp::socket::wait_read, [self = shared_from_this(), number = current_number_](ErrorCode error) {
    if (error || !self->current_ || self->current_number_ != number || self->is_whole_) return;
    char byte = 0;
    const ssize_t read = recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (read == 0 || (read < 0 && errno != EAGAIN && errno != EINTR)) self->give_up(0);
  });
}

/// Lets the work for the current request go; it counts as answered with `status`, 0 = the client has left. Closes the connection.
void HttpConnection::give_up(int status) {
  abandon();
  shared_.service.finish(*current_, status, since_request_.seconds());
  current_.reset();
  deadline_.cancel();
  ErrorCode error;
  stream_.socket().close(error);
}

void HttpConnection::abandon() {
  *current_->is_abandoned = true;
  shared_.catalog.drop_abandoned();
}

void HttpConnection::on_too_late() {
  if (is_whole_) return;  // it is being written, for which there is a time of its own
  abandon();
  constexpr int kPatience = 10;
  if (is_streamed_) return end_stream(false);
  write_whole(error_response(current_->request, 503,
                             "the translation took more than " + std::to_string(shared_.limits.request_seconds) + " seconds", kPatience));
}

std::string HttpConnection::header_of(const Response& response, bool is_streamed, size_t body_bytes) const {
  const std::string_view reason = view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status))));
  std::string header = "HTTP/1.1 " + std::to_string(response.status) + " ";
  header.append(reason).append("\r\nServer: lacuna\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  header.append("Access-Control-Allow-Origin: *\r\n");
  if (!response.content_type.empty()) header.append("Content-Type: ").append(response.content_type).append("\r\n");
  for (const auto& [name, value] : response.headers) header.append(name).append(": ").append(value).append("\r\n");
  if (!is_streamed) header.append("Content-Length: ").append(std::to_string(body_bytes)).append("\r\n");
  if (is_streamed && is_chunked_) header.append("Transfer-Encoding: chunked\r\n");
  header.append("Connection: ").append(is_kept_ ? "keep-alive" : "close").append("\r\n\r\n");
  return header;
}

void HttpConnection::write_whole(const Response& response) {
  if (is_whole_) return;
  is_kept_ = is_kept_ && !shared_.service.is_draining;
  is_whole_ = true;
  status_ = response.status;
  pending_ = header_of(response, false, response.body.size());
  if (!is_head_) pending_ += response.body;
  write_pending();
}

void HttpConnection::begin_stream(const Response& head) {
  if (is_whole_) return;
  is_kept_ = is_kept_ && is_chunked_ && !shared_.service.is_draining;
  is_streamed_ = true;
  status_ = head.status;
  pending_ = header_of(head, true, 0);
  write_pending();
}

void HttpConnection::add_to_stream(const std::string& text) {
  if (is_whole_ || text.empty()) return;
  if (is_chunked_) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    pending_ += size;
  }
  pending_ += text;
  if (is_chunked_) pending_ += "\r\n";
  write_pending();
}

void HttpConnection::end_stream(bool is_whole) {
  if (is_whole_) return;
  is_whole_ = true;
  if (is_whole && is_chunked_) pending_ += "0\r\n\r\n";
  is_kept_ = is_kept_ && is_whole;
  write_pending();
}

void HttpConnection::write_pending() {
  if (is_writing_) return;
  if (pending_.empty()) return on_written();
  is_writing_ = true;
  written_ = std::exchange(pending_, {});
  stream_.expires_after(std::chrono::seconds(shared_.limits.idle_seconds));
  asio::async_write(stream_, asio::buffer(written_), [self = shared_from_this()](ErrorCode error, size_t) {
    self->is_writing_ = false;
    if (!self->current_) return;  // it was given up meanwhile
    if (error) return self->give_up(0);
    self->write_pending();
  });
}

/// Goes on when all there is to write has been written.
void HttpConnection::on_written() {
  stream_.expires_never();
  if (!is_whole_) return;
  shared_.service.finish(*current_, status_, since_request_.seconds());
  current_.reset();
  deadline_.cancel();
  release_body();
  written_.clear();
  written_.shrink_to_fit();
  if (is_kept_) {
    read_header();
  } else {
    linger();
  }
}

/// Closes the connection so that the client can read its answer, even if it goes on sending.
void HttpConnection::linger() {
  ErrorCode error;
  stream_.socket().shutdown(Tcp::socket::shutdown_send, error);
  buffer_.clear();
  read_away_ = 0;
  stream_.expires_after(kReadAway);
  read_away();
}

void HttpConnection::read_away() {
  constexpr size_t kAtATime = 16 << 10;
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kAtATime), [self = shared_from_this()](ErrorCode error, size_t read) {
    self->read_away_ += read;
    if (!error && self->read_away_ < kMostReadAway) self->read_away();
  });
}

}  // namespace lacuna::serve

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/write.hpp>
#include <csignal>

#include "base/error.h"
#include "serve/http_connection.h"

namespace lacuna::serve {
namespace {

using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

/// Reads "127.0.0.1:5000", "[::1]:5000" or "0.0.0.0:0". Throws UsageError.
Tcp::endpoint endpoint_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string address = text.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') address = address.substr(1, address.size() - 2);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  ErrorCode error;
  const asio::ip::address read = asio::ip::make_address(address == "localhost" ? "127.0.0.1" : address, error);
  if (error || !is_number || std::stoi(port) > 65535)
    throw UsageError("--listen is \"" + text + "\"; expected an address and a port, such as 127.0.0.1:5000, 0.0.0.0:5000 or [::1]:5000");
  return {read, static_cast<uint16_t>(std::stoi(port))};
}

/// Lets the process have as many open files as connections need, as far as it may.
void allow_open_files(int64_t connections) {
  constexpr rlim_t kOthers = 200;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(connections) + kOthers;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class HttpServer::Implementation {
 public:
  Implementation(const std::string& address, Service& service, Catalog& catalog, const ConnectionLimits& limits)
      : shared_{service, catalog, limits, TrustedProxies(limits.trusted_proxies)},
        acceptor_(io_),
        signals_(io_, SIGTERM, SIGINT, SIGHUP),
        drained_(io_),
        watch_(io_),
        retry_(io_) {
    allow_open_files(limits.connections);
    const Tcp::endpoint endpoint = endpoint_of(address);
    try {
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(Tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw MachineError("--listen " + address + ": " + error.code().message() +
                         "; is another program there? Name another port, or 0 for a free one");
    }
  }

  std::string address() const {
    const Tcp::endpoint endpoint = acceptor_.local_endpoint();
    const std::string host = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
  }

  bool run(int64_t drain_seconds, int64_t watch_seconds) {
    drain_seconds_ = drain_seconds;
    watch_seconds_ = watch_seconds;
    wait_for_signal();
    look_after_models();
    accept();
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception& error) {
        log_event("error", {{"error", error.what()}});  // of one connection, such as too little memory
      }
    }
    const std::vector<HttpConnection*> open(shared_.open.begin(), shared_.open.end());
    for (HttpConnection* const connection : open) connection->give_up_if_busy();
    return is_drained_;
  }

 private:
  void accept() {
    acceptor_.async_accept([this](ErrorCode error, Tcp::socket socket) {
      if (shared_.service.is_draining) return;
      if (error) return accept_later();  // out of files, for one
      if (std::ssize(shared_.open) < shared_.limits.connections) {
        std::make_shared<HttpConnection>(std::move(socket), shared_)->start();
      } else {
        refuse(socket);
      }
      accept();
    });
  }

  void accept_later() {
    constexpr std::chrono::milliseconds kPause{100};
    retry_.expires_after(kPause);
    retry_.async_wait([this](ErrorCode cancelled) {
      if (!cancelled) accept();
    });
  }

  /// Tells a client that there are too many, as far as that needs no waiting.
  static void refuse(Tcp::socket& socket) {
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Type: application/json\r\nContent-Length: 58\r\nConnection: "
        "close\r\n"
        "\r\n{\"error\":\"too many connections are open; ask again later\"}";
    ErrorCode error;
    socket.non_blocking(true, error);
    socket.write_some(asio::buffer(kFull.data(), kFull.size()), error);
    socket.shutdown(Tcp::socket::shutdown_send, error);
  }

  void wait_for_signal() {
    signals_.async_wait([this](ErrorCode error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        shared_.service.reload(/*all=*/true);
      } else if (shared_.service.is_draining) {
        return io_.stop();  // the second one
      } else {
        drain(signal);
      }
      wait_for_signal();
    });
  }

  void drain(int signal) {
    log_event("stop", {{"signal", signal}, {"connections", shared_.open.size()}});
    shared_.service.is_draining = true;
    ErrorCode error;
    acceptor_.close(error);
    const std::vector<HttpConnection*> open(shared_.open.begin(), shared_.open.end());
    for (HttpConnection* const connection : open) connection->close_if_idle();
    drain_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(drain_seconds_);
    look_whether_drained();
  }

  void look_whether_drained() {
    constexpr std::chrono::milliseconds kPause{20};
    is_drained_ = shared_.open.empty();
    if (is_drained_ || std::chrono::steady_clock::now() >= drain_until_) return io_.stop();
    drained_.expires_after(kPause);
    drained_.async_wait([this](ErrorCode cancelled) {
      if (!cancelled) look_whether_drained();
    });
  }

  /// Frees replaced models, and loads those anew whose checkpoint is another one now.
  void look_after_models() {
    constexpr std::chrono::seconds kPause{1};
    shared_.catalog.free_replaced();
    if (watch_seconds_ > 0 && ++seconds_ % watch_seconds_ == 0 && !shared_.service.is_draining) shared_.service.reload(/*all=*/false);
    watch_.expires_after(kPause);
    watch_.async_wait([this](ErrorCode cancelled) {
      if (!cancelled) look_after_models();
    });
  }

  SharedState shared_;  // outlives the connections, which go with io_
  asio::io_context io_{1};
  Tcp::acceptor acceptor_;
  asio::signal_set signals_;
  asio::steady_timer drained_, watch_, retry_;
  std::chrono::steady_clock::time_point drain_until_;
  int64_t drain_seconds_ = 0, watch_seconds_ = 0, seconds_ = 0;
  bool is_drained_ = false;
};

HttpServer::HttpServer(const std::string& address, Service& service, Catalog& catalog, const ConnectionLimits& limits)
    : implementation_(std::make_unique<Implementation>(address, service, catalog, limits)) {}

HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  return implementation_->address();
}

bool HttpServer::run(int64_t drain_seconds, int64_t watch_seconds) {
  return implementation_->run(drain_seconds, watch_seconds);
}

}  // namespace lacuna::serve

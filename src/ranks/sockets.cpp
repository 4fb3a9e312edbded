#include "ranks/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/resources.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

constexpr char kAllAddresses[] = "0.0.0.0";

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Returns what getaddrinfo() knows; null, and why in `problem`, if it knows nothing.
AddressList look_up(const char* host, uint16_t port, int flags, std::string& problem) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) problem = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
  return {error == 0 ? found : nullptr, freeaddrinfo};
}

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text = {};
  const int error = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

/// Returns true where a numeric address is one of this machine.
bool is_own_address(const std::string& address) {
  std::string ignored;
  const AddressList own = look_up(address.c_str(), 0, AI_NUMERICHOST, ignored);
  if (!own) return false;
  const Socket probe(socket(own->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe && bind(probe.get(), own->ai_addr, own->ai_addrlen) == 0;
}

/// Returns the address that a socket is bound to, and its size.
std::pair<sockaddr_storage, socklen_t> name_of_socket(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0)
    throw MachineError(std::string("a socket has no address: ") + std::strerror(errno));
  return {own, size};
}

/// Waits until a connection that was begun stands; the error number of why it does not, or 0.
int finish_connection(int socket, std::chrono::milliseconds timeout) {
  pollfd wait = {.fd = socket, .events = POLLOUT, .revents = 0};
  const int ready = uninterrupted([&] { return poll(&wait, 1, static_cast<int>(timeout.count())); });
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (ready < 0 || getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int Socket::release() {
  return std::exchange(descriptor_, -1);
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

std::vector<std::string> addresses_of(const std::string& host, std::string& problem) {
  const AddressList found = look_up(host.c_str(), 0, 0, problem);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next)
    addresses.push_back(numeric(entry->ai_addr, entry->ai_addrlen));
  return addresses;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string own_address_towards(const std::string& address) {
  std::string ignored;
  const AddressList target = look_up(address.c_str(), 9, AI_NUMERICHOST, ignored);  // any port: nothing is sent
  if (!target) return "";
  const Socket probe(socket(target->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (!probe || connect(probe.get(), target->ai_addr, target->ai_addrlen) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return "";
  return numeric(reinterpret_cast<sockaddr*>(&own), size);
}

Socket listen_at(const std::string& address, uint16_t port) {
  const std::string place = (address.empty() ? "all addresses" : address) + ", port " + std::to_string(port);
  std::string problem;
  const AddressList own = look_up(address.empty() ? kAllAddresses : address.c_str(), port, AI_NUMERICHOST | AI_PASSIVE, problem);
  if (!own) throw MachineError(place + ": no address to listen at: " + problem);
  Socket listening(socket(own->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!listening || setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(listening.get(), own->ai_addr, own->ai_addrlen) != 0 || listen(listening.get(), SOMAXCONN) != 0)
    throw MachineError(place + ": cannot listen there: " + std::strerror(errno) +
                       (errno == EADDRINUSE ? "; another program, or another run, does. Choose another port (MASTER_PORT)" : ""));
  return listening;
}

Socket listen_as(const std::string& host, uint16_t port, const std::string& what) {
  std::string problem;
  const std::vector<std::string> addresses = addresses_of(host, problem);
  if (addresses.empty()) throw UsageError(what + " is " + host + ", which names no machine: " + problem);
  const bool is_the_same_everywhere = addresses.front() == host || host == "localhost";
  const auto fits = [&](const std::string& address) {
    return is_own_address(address) && (is_the_same_everywhere || !is_loopback(address));
  };
  if (const auto fitting = std::ranges::find_if(addresses, fits); fitting != addresses.end()) return listen_at(*fitting, port);
  if (std::ranges::none_of(addresses, is_own_address))
    log_warning("{} is {}, which is no address of this machine ({}), where rank 0 runs; it listens at all of them", what, host,
                host_name());
  return listen_at("", port);
}

uint16_t port_of(const Socket& socket) {
  const auto [own, size] = name_of_socket(socket.get());
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

std::string own_address_of(const Socket& listening) {
  const auto [own, size] = name_of_socket(listening.get());
  const std::string address = numeric(reinterpret_cast<const sockaddr*>(&own), size);
  return address == kAllAddresses ? "127.0.0.1" : address;
}

bool is_at_all_addresses(const Socket& listening) {
  const auto [own, size] = name_of_socket(listening.get());
  return numeric(reinterpret_cast<const sockaddr*>(&own), size) == kAllAddresses;
}

Socket connect_to(const std::string& address, uint16_t port, std::chrono::milliseconds timeout, std::string& problem) {
  const AddressList target = look_up(address.c_str(), port, AI_NUMERICHOST, problem);
  if (!target) return Socket();
  Socket connection(socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = !connection || connect(connection.get(), target->ai_addr, target->ai_addrlen) != 0 ? errno : 0;
  if (error == EINPROGRESS) error = finish_connection(connection.get(), timeout);
  if (error == 0) return connection;
  problem = std::strerror(error);
  return Socket();
}

}  // namespace lacuna

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

/// TCP connections between ranks.
namespace lacuna {

/// A descriptor that is closed in the destructor; -1 is none.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  /// Returns the descriptor, which the caller closes.
  int release();
  void close();

 private:
  int descriptor_;
};

/// Returns the numeric addresses of a machine, IPv4 and IPv6, in the system's order. If it has none, `problem` says why.
std::vector<std::string> addresses_of(const std::string& host, std::string& problem);

/// Returns true for 127.0.0.1 and its like.
bool is_loopback(const std::string& address);

/// Returns the address of this machine from which packets to a numeric address leave; empty if there is no way to it.
std::string own_address_towards(const std::string& address);

/// Listens, without blocking in accept(), at a numeric address; "" = at all of this machine. Port 0 = one that the system chooses. Throws
/// MachineError, which says what takes the port if it is taken.
Socket listen_at(const std::string& address, uint16_t port);

/// Listens where others look for `host`, a name or number that `what` ("MASTER_ADDR") gives them: at the address of this machine that it
/// means, or at all of them if it means 127.0.0.1 here and something else elsewhere, or an address that this machine does not know as its
/// own (a warning says so). Throws UsageError if it means nothing, MachineError as listen_at() does.
Socket listen_as(const std::string& host, uint16_t port, const std::string& what);

/// Returns the port that a socket is bound to.
uint16_t port_of(const Socket& socket);
/// Returns the numeric address by which this machine reaches a socket that listens: its own, or 127.0.0.1 if it listens at all.
std::string own_address_of(const Socket& listening);
/// Returns true if a socket listens at all addresses of this machine.
bool is_at_all_addresses(const Socket& listening);

/// Connects to a numeric address. If nobody answers in this time, the socket is empty, and `problem` says why.
Socket connect_to(const std::string& address, uint16_t port, std::chrono::milliseconds timeout, std::string& problem);

}  // namespace lacuna

#pragma once

#include <string>
#include <vector>

#include "ranks/sockets.h"

namespace lacuna {

/// A connection on which both sides send lines of text, and on which nothing blocks.
class Link {
 public:
  explicit Link(Socket socket);

  int descriptor() const { return socket_.get(); }
  bool is_open() const { return static_cast<bool>(socket_); }
  void close() { socket_.close(); }
  /// Returns what poll() has to wait for.
  short events() const;
  /// Appends the lines that have come. False once the other side has closed the connection, or has sent more than `longest_line` bytes
  /// without an end of line.
  bool read_lines(std::vector<std::string>& lines, size_t longest_line);
  /// Sends a line, as soon as it can be; line breaks in it become spaces.
  void send(const std::string& line);
  /// Sends what has waited.
  void flush();
  bool has_sent_all() const { return outgoing_.empty(); }
  /// True once the other side's machine has confirmed all that was sent. A process that ends before may take its last lines with it.
  bool has_delivered_all() const;

 private:
  Socket socket_;
  std::string incoming_, outgoing_;
};

}  // namespace lacuna

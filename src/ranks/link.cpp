#include "ranks/link.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace lacuna {

Link::Link(Socket socket) : socket_(std::move(socket)) {
  const int yes = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // no line waits for the answer to the one before
}

short Link::events() const {
  return static_cast<short>(POLLIN | (outgoing_.empty() ? 0 : POLLOUT));
}

bool Link::read_lines(std::vector<std::string>& lines, size_t longest_line) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = uninterrupted([&] { return recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT); });
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) return false;
    incoming_.append(buffer.data(), static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = incoming_.find('\n'); end != std::string::npos; end = incoming_.find('\n', begin)) {
      lines.push_back(incoming_.substr(begin, end - begin));
      begin = end + 1;
    }
    incoming_.erase(0, begin);
    if (incoming_.size() > longest_line) return false;
  }
}

void Link::send(const std::string& line) {
  constexpr size_t kMostWaiting = 1 << 16;  // of one who does not read
  if (outgoing_.size() > kMostWaiting) return;
  outgoing_ += line;
  std::replace(outgoing_.end() - static_cast<std::ptrdiff_t>(line.size()), outgoing_.end(), '\n', ' ');
  outgoing_ += '\n';
  flush();
}

void Link::flush() {
  while (!outgoing_.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL); });
    if (count <= 0) return;  // full, or closed, which reading tells
    outgoing_.erase(0, static_cast<size_t>(count));
  }
}

bool Link::has_delivered_all() const {
  int unconfirmed = 0;
  const bool is_known = ioctl(socket_.get(), SIOCOUTQ, &unconfirmed) == 0;
  return outgoing_.empty() && (!is_known || unconfirmed == 0);
}

}  // namespace lacuna

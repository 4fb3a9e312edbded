#include "ranks/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/system_error.h"

namespace lacuna {

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

}  // namespace lacuna

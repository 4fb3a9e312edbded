#include "base/line_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

/// Where in the buffer the next line ends, reading on as needed; at the end of the file, the end of the buffer.
size_t LineReader::find_line_end() {
  size_t searched = 0;  // bytes of the line known to hold no line end
  for (;;) {
    const size_t end = buffer_.find('\n', position_ + searched);
    if (std::min(end, buffer_.size()) - position_ > kMaxLineBytes)
      throw DataError(stream_.name() + ":" + std::to_string(line_number_ + 1) + ": the line is longer than 1 MiB; is this a text file?");
    if (end != std::string::npos) return end;
    searched = buffer_.size() - position_;
    if (!read_more()) return buffer_.size();
  }
}

/// Appends some bytes to the buffer, which then begins with the next line. False at the end, for which a terminal is asked only once.
bool LineReader::read_more() {
  buffer_.erase(0, position_);
  position_ = 0;
  is_at_end_ = is_at_end_ || !stream_.read(buffer_);
  return !is_at_end_;
}

bool LineReader::would_wait() {
  while (buffer_.find('\n', position_) == std::string::npos) {
    if (stream_.would_wait()) return true;
    const bool is_too_long = buffer_.size() - position_ > kMaxLineBytes;  // as `next` will say
    if (is_too_long || !read_more()) return false;
  }
  return false;
}

bool LineReader::next(std::string& line) {
  const size_t end = find_line_end();
  if (position_ == buffer_.size()) return false;
  line.assign(buffer_, position_, end - position_);
  position_ = std::min(end + 1, buffer_.size());
  if (++line_number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
    has_byte_order_mark_ = true;
  }
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
    ++carriage_returns_;
  }
  return true;
}

void LineReader::require_clean(std::string_view line) const {
  const size_t nul = line.find('\0');
  if (const auto bad = first_invalid_utf8(line); bad && *bad < nul)  // of UTF-16, which has NULs, the mark at its start
    throw DataError(place() + ": byte " + std::to_string(*bad + 1) + " is not UTF-8; convert the file (iconv -t UTF-8) or remove the line");
  if (nul != std::string_view::npos)
    throw DataError(place() + ": byte " + std::to_string(nul + 1) + " is NUL; expected UTF-8 text. Remove it (tr -d '\\000')");
}

}  // namespace lacuna

#include "data/bad_lines.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/files.h"

namespace lacuna {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  const auto escape = [&](char byte) { result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)); };
  while (!text.empty()) {
    const size_t good = first_invalid_utf8(text).value_or(text.size());
    for (const char c : text.substr(0, good))
      (static_cast<unsigned char>(c) < ' ' || c == '\x7F' || c == '\\') ? escape(c) : result.push_back(c);
    text.remove_prefix(good);
    if (text.empty()) break;
    escape(text.front());
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace

void BadLines::add(const LineError& error) {
  Kind& kind = kinds[error.kind()];
  if (++kind.lines == 1) kind.first = error.what();
}

BadLines& BadLines::operator+=(const BadLines& other) {
  for (const auto& [name, more] : other.kinds) {
    Kind& kind = kinds[name];
    if (kind.lines == 0) kind.first = more.first;
    kind.lines += more.lines;
  }
  return *this;
}

int64_t BadLines::count() const {
  int64_t count = 0;
  for (const auto& [name, kind] : kinds) count += kind.lines;
  return count;
}

std::string BadLines::text() const {
  std::string text;
  for (const auto& [name, kind] : kinds)
    text += fmt::format("{}{} {} (the first: {})", text.empty() ? "" : ", ", kind.lines, name, kind.first);
  return text;
}

std::string reject_line(const LineError& error, std::string_view line) {
  constexpr size_t kMostBytes = 1000;
  const std::string_view begin = line.substr(0, kMostBytes);
  return fmt::format("{}\t{}{}\n", escaped(error.what()), escaped(begin), line.size() > begin.size() ? "..." : "");
}

}  // namespace lacuna

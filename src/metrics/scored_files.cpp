#include "metrics/scored_files.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/error.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::string shown(const fs::path& file) {
  return file == "-" ? "standard input" : file.string();
}

using GzipFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

/// Opens plain or gzip text; "-" is stdin.
GzipFile open_text(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw DataError(file.string() + " is a directory; expected a text file with one translation a line");
  const int descriptor = file == "-" ? dup(STDIN_FILENO) : open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw DataError("cannot read " + shown(file) + ": " + std::strerror(errno));
  GzipFile text(gzdopen(descriptor, "rb"), gzclose);
  if (!text) throw MachineError("cannot read " + shown(file) + ": out of memory");
  return text;
}

/// The next bytes of the file; empty at its end.
std::string_view read_block(gzFile text, const fs::path& file, std::array<char, 1 << 16>& buffer) {
  const int count = gzread(text, buffer.data(), static_cast<unsigned>(buffer.size()));
  int error = Z_OK;
  const char* const what = gzerror(text, &error);
  if (count < 0 || error == Z_BUF_ERROR)
    throw DataError("cannot read " + shown(file) + ": " + (error == Z_ERRNO ? std::strerror(errno) : what));
  return {buffer.data(), static_cast<size_t>(count)};
}

/// Counts lines and checks that they are UTF-8, whatever the blocks they come in. A last line may lack its line break.
class LineChecker {
 public:
  explicit LineChecker(const fs::path& file) : file_(file) {}

  void add(std::string_view block) {
    for (const char c : block) add(static_cast<unsigned char>(c));
  }
  /// To be called after the last byte. Returns the number of lines.
  int64_t finish() {
    if (open_ > 0) fail("begins a character of which the rest is missing");
    return line_ - (byte_ == 0 ? 1 : 0);
  }

 private:
  void add(unsigned char c) {
    ++byte_;
    if (open_ > 0) {
      if (c < lowest_ || c > highest_) fail(c);
      --open_;
      lowest_ = 0x80, highest_ = 0xBF;
    } else if (c == '\n') {
      ++line_;
      byte_ = 0;
    } else if (c >= 0x80) {
      start_character(c);
    }
  }

  /// Unicode 15, table 3-7: how many bytes follow, and which ones may follow first (no surrogates, no overlong forms, nothing past
  /// U+10FFFF).
  void start_character(unsigned char c) {
    if (c < 0xC2 || c > 0xF4) fail(c);
    open_ = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    lowest_ = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    highest_ = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  }

  [[noreturn]] void fail(unsigned char c) const {
    std::array<char, 8> hex{};
    snprintf(hex.data(), hex.size(), "0x%02X", c);
    fail(std::string("is ") + hex.data() + ", which is not UTF-8 there");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(shown(file_) + ":" + std::to_string(line_) + ": byte " + std::to_string(byte_) + " " + what +
                    "; expected UTF-8: convert the file, as with iconv -t UTF-8");
  }

  const fs::path& file_;
  int64_t line_ = 1, byte_ = 0;  ///< both from 1; byte 0 = nothing of this line was seen yet
  int open_ = 0;                 ///< bytes of the current character still to come
  unsigned char lowest_ = 0x80, highest_ = 0xBF;
};

/// Can sacreBLEU read this file itself?
bool is_readable_as_named(const fs::path& file, gzFile text) {
  std::error_code ignored;
  const bool is_gzip = gzdirect(text) == 0;
  return file != "-" && fs::is_regular_file(file, ignored) && is_gzip == (file.extension() == ".gz");
}

}  // namespace

ScoredFiles::ScoredFiles(const std::vector<fs::path>& systems, const std::vector<fs::path>& references) {
  for (const fs::path& file : systems) systems_.push_back(add(file));
  for (const fs::path& file : references) references_.push_back(add(file));
}

std::string ScoredFiles::add(const fs::path& file) {
  const GzipFile text = open_text(file);
  std::array<char, 1 << 16> buffer;
  std::string_view block = read_block(text.get(), file, buffer);
  fs::path readable = file;
  std::ofstream copy;
  if (!is_readable_as_named(file, text.get())) {
    readable = copies_.path() / (std::to_string(num_copies_++) + "_" + (file == "-" ? "stdin" : file.stem().string()));
    copy.open(readable, std::ios::binary);
  }
  LineChecker lines(file);
  for (; !block.empty(); block = read_block(text.get(), file, buffer)) {
    lines.add(block);
    if (copy.is_open()) copy.write(block.data(), static_cast<std::streamsize>(block.size()));
  }
  if (copy.is_open() && !copy.flush()) throw MachineError("cannot write " + readable.string() + ": is the disk full?");

  const int64_t count = lines.finish();
  if (count == 0) throw DataError(shown(file) + " is empty; expected one translation a line");
  if (num_lines_ >= 0 && count != num_lines_) {
    throw DataError(shown(first_file_) + " has " + std::to_string(num_lines_) + " lines, " + shown(file) + " has " + std::to_string(count) +
                    "; a translation and its references need one line for each sentence");
  }
  if (num_lines_ < 0) first_file_ = file;
  num_lines_ = count;
  return readable.native().starts_with('-') ? "./" + readable.string() : readable.string();  // or it reads as an option
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  std::ofstream stream(file, std::ios::binary);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\n') != std::string::npos) throw DataError("sentence " + std::to_string(i + 1) + " to be scored holds a line break");
    stream << lines[i] << '\n';
  }
  if (!stream.flush()) throw MachineError("cannot write " + file.string() + ": is the disk full?");
}

}  // namespace lacuna

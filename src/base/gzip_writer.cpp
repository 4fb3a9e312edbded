#include "base/gzip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace lacuna {

struct GzipWriter::Deflater {
  z_stream state = {};

  Deflater() {
    constexpr int kGzipFormat = 16, kDefaultMemory = 8;
    if (deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kDefaultMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&state); }

  /// All of `text`, which zlib reads only, and with Z_FINISH the end.
  void pack(std::string_view text, int flush, FileWriter& file) {
    std::array<Bytef, 1 << 16> packed;
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    state.avail_in = static_cast<uInt>(text.size());
    do {
      state.next_out = packed.data();
      state.avail_out = static_cast<uInt>(packed.size());
      deflate(&state, flush);
      file.write({reinterpret_cast<const char*>(packed.data()), packed.size() - state.avail_out});
    } while (state.avail_out == 0);
  }
};

GzipWriter::GzipWriter(FileWriter& file) : deflater_(std::make_unique<Deflater>()), file_(file) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::write(std::string_view text) {
  constexpr size_t kMostAtATime = std::numeric_limits<uInt>::max();
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMostAtATime)))
    deflater_->pack(text.substr(0, kMostAtATime), Z_NO_FLUSH, file_);
}

void GzipWriter::finish() {
  deflater_->pack({}, Z_FINISH, file_);
}

}  // namespace lacuna

#include "base/packed_writer.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr size_t kPackedAtATime = 1 << 16;

class GzipWriter : public PackedWriter {
 public:
  explicit GzipWriter(FileWriter& file) : file_(file) {
    constexpr int kGzipFormat = 16, kDefaultMemory = 8;
    if (deflateInit2(&state_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kDefaultMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter() override { deflateEnd(&state_); }

  void write(std::string_view text) override {
    constexpr size_t kMostAtATime = std::numeric_limits<uInt>::max();
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMostAtATime))) pack(text.substr(0, kMostAtATime), Z_NO_FLUSH);
  }
  void finish() override { pack({}, Z_FINISH); }

 private:
  /// All of `text`, which zlib reads only, and with Z_FINISH the end.
  void pack(std::string_view text, int flush) {
    std::array<Bytef, kPackedAtATime> packed;
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    state_.avail_in = static_cast<uInt>(text.size());
    do {
      state_.next_out = packed.data();
      state_.avail_out = static_cast<uInt>(packed.size());
      deflate(&state_, flush);
      file_.write({reinterpret_cast<const char*>(packed.data()), packed.size() - state_.avail_out});
    } while (state_.avail_out == 0);
  }

  FileWriter& file_;
  z_stream state_ = {};
};

class ZstdWriter : public PackedWriter {
 public:
  explicit ZstdWriter(FileWriter& file) : file_(file), state_(ZSTD_createCCtx()) {
    if (state_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(state_.get(), ZSTD_c_checksumFlag, 1);  // of the text, as gzip has one
  }

  void write(std::string_view text) override {
    ZSTD_inBuffer from = {text.data(), text.size(), 0};
    while (from.pos < from.size) pack(from, ZSTD_e_continue);
  }
  void finish() override {
    ZSTD_inBuffer nothing = {nullptr, 0, 0};
    while (pack(nothing, ZSTD_e_end) > 0) {
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* state) const { ZSTD_freeCCtx(state); }
  };

  /// Some of `from`; 0 once all is written that `directive` asks for.
  size_t pack(ZSTD_inBuffer& from, ZSTD_EndDirective directive) {
    std::array<char, kPackedAtATime> packed;
    ZSTD_outBuffer to = {packed.data(), packed.size(), 0};
    const size_t left = ZSTD_compressStream2(state_.get(), &to, &from, directive);
    if (ZSTD_isError(left)) throw MachineError(std::string("zstd cannot pack text: ") + ZSTD_getErrorName(left));
    file_.write({packed.data(), to.pos});
    return left;
  }

  FileWriter& file_;
  std::unique_ptr<ZSTD_CCtx, Free> state_;
};

}  // namespace

std::unique_ptr<PackedWriter> packed_writer(const std::filesystem::path& name, FileWriter& file) {
  if (name.extension() == ".gz") return std::make_unique<GzipWriter>(file);
  if (name.extension() == ".zst") return std::make_unique<ZstdWriter>(file);
  return nullptr;
}

}  // namespace lacuna

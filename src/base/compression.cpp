#include "base/compression.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr int kGzipFormat = 16;  // added to zlib's window bits

constexpr size_t kTextAtATime = 1 << 16;

class GzipDecompressor : public Decompressor {
 public:
  explicit GzipDecompressor(const std::string& file) : Decompressor("gzip", file) {
    if (inflateInit2(&state_, MAX_WBITS + kGzipFormat) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecompressor() override { inflateEnd(&state_); }

 private:
  bool step(std::string_view& packed, std::span<char>& room) override {
    if (!is_within_part()) {  // zero padding behind a member, which gzip accepts
      packed.remove_prefix(std::min(packed.find_first_not_of('\0'), packed.size()));
      if (packed.empty()) return false;
    }
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // which zlib only reads
    state_.avail_in = static_cast<uInt>(packed.size());
    state_.next_out = reinterpret_cast<Bytef*>(room.data());
    state_.avail_out = static_cast<uInt>(room.size());
    const int code = inflate(&state_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      refuse_as_damaged(state_.msg != nullptr ? state_.msg : "it cannot be decompressed");
    packed.remove_prefix(packed.size() - state_.avail_in);
    room = room.last(state_.avail_out);
    if (code == Z_STREAM_END) inflateReset(&state_);
    return code != Z_STREAM_END;
  }

  z_stream state_ = {};
};

class ZstdDecompressor : public Decompressor {
 public:
  explicit ZstdDecompressor(const std::string& file) : Decompressor("zstd", file), state_(ZSTD_createDCtx()) {
    if (state_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }

 private:
  static constexpr int kMostWindowLog = 27;  // the library's default, and what `zstd` writes at most without --long
  struct Free {
    void operator()(ZSTD_DCtx* state) const { ZSTD_freeDCtx(state); }
  };

  bool step(std::string_view& packed, std::span<char>& room) override {
    ZSTD_inBuffer from = {packed.data(), packed.size(), 0};
    ZSTD_outBuffer to = {room.data(), room.size(), 0};
    const size_t left = ZSTD_decompressStream(state_.get(), &to, &from);
    if (ZSTD_isError(left)) refuse(left);
    packed.remove_prefix(from.pos);
    room = room.subspan(to.pos);
    return left > 0;
  }

  [[noreturn]] void refuse(size_t result) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
    if (code == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (code == ZSTD_error_frameParameter_windowTooLarge)
      throw DataError(
          file() + ": is packed by zstd with a window of more than " + std::to_string((1 << kMostWindowLog) >> 20) +
          " MiB, which decompressing would keep in memory; pack it without --long, or with --long=" + std::to_string(kMostWindowLog));
    refuse_as_damaged(ZSTD_getErrorName(result));
  }

  std::unique_ptr<ZSTD_DCtx, Free> state_;
};

constexpr size_t kPackedAtATime = 1 << 16;

class GzipWriter : public CompressedWriter {
 public:
  explicit GzipWriter(FileWriter& file) : file_(file) {
    constexpr int kDefaultMemory = 8;
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
  /// Compresses all of `text`; Z_FINISH ends the format.
  void pack(std::string_view text, int flush) {
    std::array<Bytef, kPackedAtATime> packed;
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // which zlib only reads
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

class ZstdWriter : public CompressedWriter {
 public:
  explicit ZstdWriter(FileWriter& file) : file_(file), state_(ZSTD_createCCtx()) {
    if (state_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(state_.get(), ZSTD_c_checksumFlag, 1);  // of the text, as in gzip
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

  /// Compresses some of `from`; returns 0 once everything `directive` asks for is written.
  size_t pack(ZSTD_inBuffer& from, ZSTD_EndDirective directive) {
    std::array<char, kPackedAtATime> packed;
    ZSTD_outBuffer to = {packed.data(), packed.size(), 0};
    const size_t left = ZSTD_compressStream2(state_.get(), &to, &from, directive);
    if (ZSTD_isError(left)) throw MachineError(std::string("zstd cannot compress text: ") + ZSTD_getErrorName(left));
    file_.write({packed.data(), to.pos});
    return left;
  }

  FileWriter& file_;
  std::unique_ptr<ZSTD_CCtx, Free> state_;
};

}  // namespace

void Decompressor::decompress(std::string& packed, std::string& text) {
  const size_t old = text.size();
  text.resize(old + kTextAtATime);
  std::string_view left = packed;
  std::span<char> room(text.data() + old, kTextAtATime);
  is_within_part_ = step(left, room);
  was_filled_ = room.empty();
  packed.erase(0, packed.size() - left.size());
  text.resize(text.size() - room.size());
}

void Decompressor::refuse_as_damaged(const std::string& why) const {
  throw DataError(file_ + ": damaged " + std::string(format_) + " file: " + why);
}

std::unique_ptr<Decompressor> gzip_decompressor(const std::string& file) {
  return std::make_unique<GzipDecompressor>(file);
}

std::unique_ptr<Decompressor> zstd_decompressor(const std::string& file) {
  return std::make_unique<ZstdDecompressor>(file);
}

std::unique_ptr<CompressedWriter> compressed_writer(const std::filesystem::path& name, FileWriter& file) {
  if (name.extension() == ".gz") return std::make_unique<GzipWriter>(file);
  if (name.extension() == ".zst") return std::make_unique<ZstdWriter>(file);
  return nullptr;
}

}  // namespace lacuna

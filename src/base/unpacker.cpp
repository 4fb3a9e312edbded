#include "base/unpacker.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <new>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr size_t kTextAtATime = 1 << 16;

class GzipUnpacker : public Unpacker {
 public:
  explicit GzipUnpacker(const std::string& file) : Unpacker("gzip", file) {
    constexpr int kGzipFormat = 16;
    if (inflateInit2(&state_, MAX_WBITS + kGzipFormat) != Z_OK) throw std::bad_alloc();
  }
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;
  ~GzipUnpacker() override { inflateEnd(&state_); }

 private:
  bool step(std::string_view& packed, std::span<char>& room) override {
    if (!is_within_part()) {  // tapes and disks fill up with zeros what they hold, and gzip takes no offence
      packed.remove_prefix(std::min(packed.find_first_not_of('\0'), packed.size()));
      if (packed.empty()) return false;
    }
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // which zlib reads only
    state_.avail_in = static_cast<uInt>(packed.size());
    state_.next_out = reinterpret_cast<Bytef*>(room.data());
    state_.avail_out = static_cast<uInt>(room.size());
    const int code = inflate(&state_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      refuse_as_damaged(state_.msg != nullptr ? state_.msg : "it cannot be unpacked");
    packed.remove_prefix(packed.size() - state_.avail_in);
    room = room.last(state_.avail_out);
    if (code == Z_STREAM_END) inflateReset(&state_);
    return code != Z_STREAM_END;
  }

  z_stream state_ = {};
};

class ZstdUnpacker : public Unpacker {
 public:
  explicit ZstdUnpacker(const std::string& file) : Unpacker("zstd", file), state_(ZSTD_createDCtx()) {
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
          " MiB, which unpacking would keep in memory; pack it without --long, or with --long=" + std::to_string(kMostWindowLog));
    refuse_as_damaged(ZSTD_getErrorName(result));
  }

  std::unique_ptr<ZSTD_DCtx, Free> state_;
};

}  // namespace

void Unpacker::unpack(std::string& packed, std::string& text) {
  const size_t old = text.size();
  text.resize(old + kTextAtATime);
  std::string_view left = packed;
  std::span<char> room(text.data() + old, kTextAtATime);
  is_within_part_ = step(left, room);
  was_filled_ = room.empty();
  packed.erase(0, packed.size() - left.size());
  text.resize(text.size() - room.size());
}

void Unpacker::require_end() const {
  if (is_within_part_) refuse_as_damaged("it ends too early");
}

void Unpacker::refuse_as_damaged(const std::string& why) const {
  throw DataError(file_ + ": damaged " + std::string(packer_) + " file: " + why);
}

std::unique_ptr<Unpacker> gzip_unpacker(const std::string& file) {
  return std::make_unique<GzipUnpacker>(file);
}

std::unique_ptr<Unpacker> zstd_unpacker(const std::string& file) {
  return std::make_unique<ZstdUnpacker>(file);
}

}  // namespace lacuna

#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

namespace lacuna {

/// Compresses text as one gzip member; if it is not to be whole, the text is flushed and the member does not end.
inline std::string gzip_of(const std::string& text, bool is_whole = true) {
  constexpr int kGzipFormat = 16, kDefaultMemory = 8;
  z_stream state = {};
  EXPECT_EQ(deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kDefaultMemory, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&state, text.size()) + 16, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&state, is_whole ? Z_FINISH : Z_SYNC_FLUSH), is_whole ? Z_STREAM_END : Z_OK);
  packed.resize(packed.size() - state.avail_out);
  deflateEnd(&state);
  return packed;
}

/// Compresses text as one zstd frame; see gzip_of.
inline std::string zstd_of(const std::string& text, bool is_whole = true) {
  ZSTD_CCtx* const state = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(state, ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  ZSTD_inBuffer from = {text.data(), text.size(), 0};
  ZSTD_outBuffer to = {packed.data(), packed.size(), 0};
  EXPECT_EQ(ZSTD_compressStream2(state, &to, &from, is_whole ? ZSTD_e_end : ZSTD_e_flush), 0u);
  packed.resize(to.pos);
  ZSTD_freeCCtx(state);
  return packed;
}

struct TestPacker {
  std::string_view name;
  std::string (*pack)(const std::string& text, bool is_whole);
};

/// The formats that are read.
inline constexpr TestPacker kTestPackers[] = {{"gzip", gzip_of}, {"zstd", zstd_of}};

}  // namespace lacuna

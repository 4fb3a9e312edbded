#include "parts/input_digest.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"

namespace lacuna {
namespace {

TEST(SampledDigest, IsThatOfAllBytesOfASmallFile) {
  const ScratchFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{kMostSampledBytes}}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    const std::string file = folder.write("file", bytes);
    EXPECT_EQ(sampled_digest_of(file), digest_of(file)) << size;
  }
}

TEST(SampledDigest, SeesTheEndsAndTheMiddleOfALargeFile) {
  const ScratchFolder folder;
  const std::string bytes(3 * kMostSampledBytes + 5, 'x');
  const FileDigest before = sampled_digest_of(folder.write("file", bytes));
  EXPECT_EQ(before.bytes, bytes.size());
  EXPECT_NE(before, digest_of(folder / "file"));
  for (const size_t at : {size_t{0}, bytes.size() / 63 * 31, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = 'y';
    EXPECT_NE(sampled_digest_of(folder.write("file", changed)), before) << at;
  }
  EXPECT_NE(sampled_digest_of(folder.write("file", bytes + "x")), before);
}

TEST(SampledDigest, IsOfFilesThatCanBeReadAgain) {
  EXPECT_THROW(sampled_digest_of("/dev/null"), DataError);
  EXPECT_THROW(sampled_digest_of("/there/is/none"), DataError);
}

}  // namespace
}  // namespace lacuna

#include "base/compression.h"

#include <gtest/gtest.h>

#include "base/line_reader.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

/// What names end in, and who packs such files.
constexpr std::pair<const char*, std::string_view> kEndings[] = {{".gz", "gzip"}, {".zst", "zstd"}};

void write_packed(const std::string& path, const std::vector<std::string>& parts) {
  FileWriter file(path);
  const auto packed = compressed_writer(path, file);
  for (const std::string& part : parts) packed->write(part);
  packed->finish();
  file.finish();
}

/// The text of the file, and who packed it.
std::pair<std::string, std::string_view> decompressed(const std::string& path) {
  InputStream stream(path);
  std::string text;
  while (stream.read(text)) {
  }
  return {text, stream.compression()};
}

TEST(CompressedWriter, RoundTrips) {
  const ScratchFolder folder;
  std::string large;  // that does not pack well
  for (uint32_t i = 0, state = 1; i < 1 << 20; ++i) large += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const auto& [ending, packer] : kEndings) {
    const std::string file = folder / (std::string("a") + ending);
    write_packed(file, {"one line\n", "", large});
    EXPECT_TRUE(decompressed(file) == std::pair(std::string("one line\n").append(large), packer)) << ending;
  }
}

TEST(CompressedWriter, WritesAValidFileForNoText) {
  const ScratchFolder folder;
  for (const auto& [ending, packer] : kEndings) {
    const std::string file = folder / (std::string("empty") + ending);
    write_packed(file, {});
    EXPECT_EQ(decompressed(file), std::pair(std::string(), packer));
    EXPECT_GT(std::filesystem::file_size(file), 10u);
  }
}

TEST(CompressedWriter, MakesTheSameFileFromTheSameText) {
  const ScratchFolder folder;
  for (const auto& [ending, packer] : kEndings) {
    const std::string one = folder / (std::string("a") + ending), other = folder / (std::string("another name") + ending);
    write_packed(one, {"text\n"});
    write_packed(other, {"te", "", "xt\n"});
    EXPECT_EQ(bytes_of(one), bytes_of(other)) << packer;
  }
}

TEST(CompressedWriter, ExistsForCompressedNamesOnly) {
  const ScratchFolder folder;
  FileWriter file(folder / "file");
  for (const char* name : {"text", "text.txt", "gz", ".zst", "text.gz.txt"}) EXPECT_EQ(compressed_writer(name, file), nullptr) << name;
}

}  // namespace
}  // namespace lacuna

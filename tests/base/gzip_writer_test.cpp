#include "base/gzip_writer.h"

#include <gtest/gtest.h>

#include "base/input_stream.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

void write_packed(const std::string& path, const std::vector<std::string>& parts) {
  FileWriter file(path);
  GzipWriter packed(file);
  for (const std::string& part : parts) packed.write(part);
  packed.finish();
  file.finish();
}

std::string unpacked(const std::string& path) {
  InputStream stream(path);
  std::string text;
  while (stream.read(text)) {
  }
  EXPECT_TRUE(stream.is_gzip());
  return text;
}

TEST(GzipWriter, WritesWhatReadsBackAsTheSameText) {
  const ScratchFolder folder;
  std::string large;  // that does not pack well
  for (uint32_t i = 0, state = 1; i < 1 << 20; ++i) large += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  write_packed(folder / "a.gz", {"one line\n", "", large});
  EXPECT_EQ(unpacked(folder / "a.gz"), std::string("one line\n").append(large));
}

TEST(GzipWriter, WritesAFileOfNothingThatIsWhole) {
  const ScratchFolder folder;
  write_packed(folder / "empty.gz", {});
  EXPECT_EQ(unpacked(folder / "empty.gz"), "");
  EXPECT_GT(std::filesystem::file_size(folder / "empty.gz"), 10u);
}

TEST(GzipWriter, MakesTheSameFileOfTheSameText) {
  const ScratchFolder folder;
  write_packed(folder / "a.gz", {"text\n"});
  write_packed(folder / "another name.gz", {"te", "xt\n"});
  EXPECT_EQ(bytes_of(folder / "a.gz"), bytes_of(folder / "another name.gz"));
}

}  // namespace
}  // namespace lacuna

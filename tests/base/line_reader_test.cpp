#include "base/line_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "child.h"
#include "packed.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& path) {
  Lines lines;
  std::string line;
  for (LineReader reader(path); reader.next(line);) lines.push_back(line);
  return lines;
}

std::string many_lines() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 70), 'x') + "\n";
  return text;
}

TEST(LineReader, GivesLinesWithAndWithoutALastLineEnd) {
  const ScratchFolder folder;
  EXPECT_THAT(lines_of(folder.write("a", "one\n\nthree\n")), ElementsAre("one", "", "three"));
  EXPECT_THAT(lines_of(folder.write("b", "one\ntwo")), ElementsAre("one", "two"));
  EXPECT_THAT(lines_of(folder.write("c", "\n")), ElementsAre(""));
  EXPECT_THAT(lines_of(folder.write("d", "x")), ElementsAre("x"));
  EXPECT_THAT(lines_of(folder.write("e", "")), ElementsAre());
}

TEST(LineReader, CountsFromTheNumberOfItsFirstLine) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n"), 1000);
  std::string line;
  EXPECT_EQ(reader.line_number(), 999);
  reader.next(line);
  EXPECT_EQ(line, "one");
  EXPECT_THAT(reader.place(), HasSubstr("a:1000"));
  reader.next(line);
  EXPECT_EQ(line, "\xEF\xBB\xBFtwo");
  EXPECT_EQ(reader.line_number(), 1001);
}

TEST(LineReader, PassesOverLinesWhateverTheyHold) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "one\n" + std::string(3 << 20, 'x') + "\n\xff\nfour\nfive"));
  std::string line;
  EXPECT_TRUE(reader.skip(3));
  EXPECT_FALSE(reader.is_at_end());
  reader.next(line);
  EXPECT_EQ(line, "four");
  EXPECT_EQ(reader.line_number(), 4);
  EXPECT_TRUE(reader.skip(1));
  EXPECT_TRUE(reader.is_at_end());
  EXPECT_TRUE(reader.skip(0));
  EXPECT_FALSE(reader.skip(1));
  EXPECT_EQ(reader.line_number(), 5);
  EXPECT_TRUE(LineReader(folder.write("empty", "")).is_at_end());
  LineReader long_line(folder.write("b", std::string(3 << 20, 'x')));
  EXPECT_TRUE(long_line.skip(1));
  EXPECT_TRUE(long_line.is_at_end());
}

TEST(LineReader, SplitsAtLineFeedsOnly) {
  const ScratchFolder folder;
  EXPECT_THAT(lines_of(folder.write("a", "a\u2028b\rc\u0085d\fe\n")), ElementsAre("a\u2028b\rc\u0085d\fe"));
}

TEST(LineReader, DropsAndCountsCarriageReturnsAtLineEnds) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "one\r\ntwo\nthree\r\n"));
  Lines lines(3);
  for (std::string& line : lines) reader.next(line);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
  EXPECT_EQ(reader.carriage_returns(), 2);
  EXPECT_EQ(reader.line_number(), 3);
}

TEST(LineReader, ReadsPackedTextAsPlainWhateverTheName) {
  const ScratchFolder folder;
  const std::string text = many_lines();
  const Lines lines = lines_of(folder.write("text.gz", text));
  for (const TestPacker& packer : kTestPackers) EXPECT_EQ(lines_of(folder.write("text", packer.pack(text, true))), lines) << packer.name;
}

TEST(LineReader, KnowsHowMuchOfAFileWasRead) {
  const ScratchFolder folder;
  LineReader reader(folder.write("text", "1234\n1234\n1234\n1234\n"));
  std::string line;
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(reader.share_read(), share);
  }
}

TEST(LineReader, KnowsThePacker) {
  const ScratchFolder folder;
  const auto packer_of = [&](const std::string& bytes) {
    std::string line;
    LineReader reader(folder.write("text", bytes));
    reader.next(line);
    return std::string(reader.compression());
  };
  EXPECT_EQ(packer_of("a\n"), "");
  for (const TestPacker& packer : kTestPackers) EXPECT_EQ(packer_of(packer.pack("a\n", true)), packer.name);
}

TEST(LineReader, ReadsPackedTextOfSeveralParts) {
  const ScratchFolder folder;
  for (const TestPacker& packer : kTestPackers) {
    const std::string nothing = packer.pack("", true);
    const std::string parts = nothing + packer.pack("one\nhalf ", true) + nothing + packer.pack("line\nthree\n", true);
    EXPECT_THAT(lines_of(folder.write("parts", parts)), ElementsAre("one", "half line", "three")) << packer.name;
  }
}

TEST(LineReader, PassesOverZerosBetweenMembersOfAGzipFileAndBehindThem) {
  const ScratchFolder folder;
  const std::string one = gzip_of("one\nhalf "), two = gzip_of("line\nthree\n");
  for (const size_t zeros : {1, 1 << 16, 200000}) {
    const std::string padding(zeros, '\0');
    EXPECT_THAT(lines_of(folder.write("both", one + padding + two + padding)), ElementsAre("one", "half line", "three"));
    EXPECT_THAT(message_of<DataError>([&] { lines_of(folder.write("more", one + padding + "x")); }), HasSubstr("damaged gzip"));
  }
}

TEST(LineReader, PassesOverSkippableFramesOfAZstdFile) {
  const ScratchFolder folder;
  const std::string one = zstd_of("one\nhalf "), two = zstd_of("line\nthree\n");
  for (const char first : {'\x50', '\x5F'})
    for (const size_t size : {0, 5, 200000}) {
      const std::string length = {static_cast<char>(size), static_cast<char>(size >> 8), static_cast<char>(size >> 16), '\0'};
      const std::string skipped = std::string(1, first).append("\x2A\x4D\x18").append(length).append(size, 's');
      EXPECT_THAT(lines_of(folder.write("frames", skipped + one + skipped + two + skipped)), ElementsAre("one", "half line", "three"));
      EXPECT_THAT(lines_of(folder.write("frames", skipped)), ElementsAre());
      EXPECT_THAT(message_of<DataError>([&] { lines_of(folder.write("cut", one + skipped.substr(0, skipped.size() - 1))); }),
                  HasSubstr("damaged zstd file: it ends too early"));
    }
}

TEST(LineReader, SaysThatAPackedFileEndsTooEarly) {
  const ScratchFolder folder;
  for (const TestPacker& packer : kTestPackers) {
    const std::string whole = packer.pack(many_lines(), true);
    for (const size_t size : {size_t{4}, whole.size() / 2, whole.size() - 1}) {
      const std::string cut = folder.write("cut", whole.substr(0, size));
      EXPECT_EQ(message_of<DataError>([&] { lines_of(cut); }), cut + ": damaged " + std::string(packer.name) + " file: it ends too early");
    }
  }
}

TEST(LineReader, SaysThatAPackedFileIsDamaged) {
  const ScratchFolder folder;
  for (const TestPacker& packer : kTestPackers) {
    std::string bytes = packer.pack(many_lines(), true);
    const std::string trailed = folder.write("trailed", bytes + "no part of a packed file");
    bytes[bytes.size() / 2] ^= 0x55;
    const std::string damaged = folder.write("damaged", bytes);
    for (const std::string& file : {trailed, damaged})
      EXPECT_THAT(message_of<DataError>([&] { lines_of(file); }), HasSubstr(file + ": damaged " + std::string(packer.name) + " file: "));
  }
}

TEST(LineReader, SaysWhatZstdSays) {
  const ScratchFolder folder;
  std::string bytes = zstd_of("one\n");
  bytes.back() ^= 0x55;  // of its checksum
  const std::string damaged = folder.write("damaged", bytes);
  EXPECT_EQ(message_of<DataError>([&] { lines_of(damaged); }), damaged + ": damaged zstd file: Restored data doesn't match checksum");
}

TEST(LineReader, RefusesAZstdFileThatTakesMuchMemory) {
  const ScratchFolder folder;
  const std::string header("\x28\xB5\x2F\xFD\0", 5), empty_block("\x01\0\0", 3);  // between them comes the window
  EXPECT_THAT(lines_of(folder.write("window", header + static_cast<char>((27 - 10) << 3) + empty_block)), ElementsAre());
  for (const int window_log : {28, 31, 41}) {
    const std::string file = folder.write("window", header + static_cast<char>((window_log - 10) << 3) + empty_block);
    EXPECT_THAT(message_of<DataError>([&] { lines_of(file); }),
                AllOf(HasSubstr(file), HasSubstr("a window of more than 128 MiB"), HasSubstr("--long=27")));
  }
}

TEST(LineReader, NamesAPackerThatItCannotRead) {
  const ScratchFolder folder;
  const std::vector<std::pair<std::string, std::string>> files = {
      {"zip", std::string("PK\x03\x04\x14\0", 6)}, {"xz", std::string("\xFD\x37zXZ\0\0", 7)}, {"bzip2", "BZh91AY&SY\x01"}};
  for (const auto& [packer, bytes] : files) {
    const std::string file = folder.write("packed", bytes);
    EXPECT_EQ(message_of<DataError>([&] { lines_of(file); }),
              file + ": is compressed with " + packer + "; decompress it, or use gzip or zstd");
  }
}

TEST(LineReader, ReadsTextThatBeginsAlmostAsAPackedFile) {
  const ScratchFolder folder;
  for (const std::string text : {"BZh9", "BZh91AY&SX", "PK", "B", "P\x03", "(", "P", "_*M", "X*", "`*M\x18"})
    EXPECT_THAT(lines_of(folder.write("text", text + "\nnext\n")), ElementsAre(text, "next"));
  EXPECT_THAT(lines_of(folder.write("short", "BZh")), ElementsAre("BZh"));
}

TEST(LineReader, RefusesALineThatIsNoLine) {
  const ScratchFolder folder;
  const std::string file = folder.write("a", "short\n" + std::string(2 << 20, 'x') + "\n");
  EXPECT_THAT(message_of<DataError>([&] { lines_of(file); }), AllOf(HasSubstr(file + ":2"), HasSubstr("1 MiB")));
}

TEST(LineReader, GoesOnBehindALineThatIsTooLong) {
  const ScratchFolder folder;
  const std::string longest(3 << 20, 'x');
  for (const std::string& text :
       {"one\n" + longest + "\nthree\n", "one\n" + longest + "\r\nthree", gzip_of("one\n" + longest + "\nthree\n")}) {
    LineReader reader(folder.write("a", text));
    std::string line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_THAT(message_of<LineError>([&] { reader.next(line); }), HasSubstr("a:2: the line is longer than 1 MiB"));
    EXPECT_EQ(line.size(), size_t{1} << 20) << "its beginning";
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "three");
    EXPECT_EQ(reader.line_number(), 3);
    EXPECT_FALSE(reader.next(line));
  }
  LineReader reader(folder.write("a", longest));
  std::string line;
  EXPECT_THROW(reader.next(line), LineError);
  EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, WouldWaitForTheRestOfALineThatIsTooLong) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader("/dev/fd/" + std::to_string(ends[0]));
  const pid_t writer = start_child([&] {
    const std::string longest((1 << 20) + 1, 'x');
    return write(ends[1], longest.data(), longest.size()) == static_cast<ssize_t>(longest.size()) ? 0 : 1;
  });
  std::string line;
  EXPECT_THROW(reader.next(line), LineError);
  EXPECT_EQ(exit_code_of(writer), 0);
  EXPECT_TRUE(reader.would_wait());
  ASSERT_EQ(write(ends[1], "xx\ntwo", 6), 6);
  EXPECT_TRUE(reader.would_wait());
  ASSERT_EQ(write(ends[1], "\n", 1), 1);
  EXPECT_FALSE(reader.would_wait());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
  close(ends[0]);
  close(ends[1]);
}

TEST(LineReader, TakesALineOfAMebibyteAndNoByteMore) {
  const ScratchFolder folder;
  const std::string longest(1 << 20, 'x');
  for (const std::string end : {"\n", ""}) {
    EXPECT_TRUE(lines_of(folder.write("a", "short\n" + longest + end)).back() == longest);
    EXPECT_THAT(message_of<DataError>([&] { lines_of(folder.write("b", "short\n" + longest + "x" + end)); }), HasSubstr("b:2"));
  }
}

TEST(LineReader, ReadsLittleMoreOfALineThatDoesNotEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t endless = start_child([&] {
    const std::string block(1 << 16, 'x');
    close(ends[0]);
    for (int blocks = 0; blocks < 64; ++blocks)
      if (write(ends[1], block.data(), block.size()) < 0) break;
    return 0;
  });
  close(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_THAT(message_of<DataError>([&] { lines_of(name); }), AllOf(HasSubstr(name + ":1"), HasSubstr("1 MiB")));
  close(ends[0]);  // nobody reads on
  EXPECT_EQ(exit_code_of(endless), 1000 + SIGPIPE);
}

TEST(LineReader, NamesLineAndByteOfNulAndInvalidUtf8) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "fine\nbad\xFF\n"));
  std::string line;
  reader.next(line);
  EXPECT_NO_THROW(reader.require_clean(line));
  reader.next(line);
  EXPECT_THAT(message_of<DataError>([&] { reader.require_clean(line); }), AllOf(HasSubstr("a:2"), HasSubstr("byte 4"), HasSubstr("UTF-8")));
  EXPECT_THAT(message_of<DataError>([&] { reader.require_clean(std::string_view("x\0y", 3)); }),
              AllOf(HasSubstr("a:2"), HasSubstr("byte 2"), HasSubstr("NUL")));
  const std::string_view utf16("\xFF\xFEx\0", 4);
  EXPECT_THAT(message_of<DataError>([&] { reader.require_clean(utf16); }), AllOf(HasSubstr("byte 1"), HasSubstr("iconv")));
}

TEST(LineReader, DropsAByteOrderMarkAtTheStartAlone) {
  const ScratchFolder folder;
  LineReader reader(folder.write("a", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n"));
  std::string line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(reader.has_byte_order_mark());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "\xEF\xBB\xBFtwo");
}

TEST(LineReader, OfAFolderOrAMissingFileIsAnError) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { LineReader reader(folder.path()); }), HasSubstr("is a folder"));
  EXPECT_THAT(message_of<DataError>([&] { LineReader reader(folder / "none"); }), HasSubstr("No such file"));
  EXPECT_THAT(message_of<DataError>([&] { LineReader reader(std::string(5000, 'a')); }), HasSubstr("File name too long"));
}

TEST(LineReader, GivesALineOfAPipeAsSoonAsItIsThere) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader("/dev/fd/" + std::to_string(ends[0]));
  EXPECT_TRUE(reader.would_wait());
  ASSERT_EQ(write(ends[1], "one\ntwo\nhal", 11), 11);
  EXPECT_FALSE(reader.would_wait());
  std::string line;
  ASSERT_TRUE(reader.next(line));  // would wait for ever if it wanted a full buffer
  EXPECT_EQ(line, "one");
  EXPECT_FALSE(reader.would_wait());
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(reader.would_wait());
  close(ends[1]);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "hal");
  EXPECT_FALSE(reader.next(line));
  close(ends[0]);
}

TEST(LineReader, GivesAllLinesThatAreInAPackedPipe) {
  constexpr int kLines = 30000;  // more than is unpacked at a time, in few bytes
  std::string text;
  for (int i = 0; i < kLines; ++i) text += "a line\n";
  for (const TestPacker& packer : kTestPackers) {
    SCOPED_TRACE(packer.name);
    const std::string packed = packer.pack(text, false);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(write(ends[1], packed.data(), packed.size()), static_cast<ssize_t>(packed.size()));
    LineReader reader("/dev/fd/" + std::to_string(ends[0]));
    std::string line;
    for (int i = 0; i < kLines; ++i) {
      ASSERT_FALSE(reader.would_wait()) << i;
      ASSERT_TRUE(reader.next(line));  // would wait for ever if it wanted more bytes
      ASSERT_EQ(line, "a line");
    }
    EXPECT_TRUE(reader.would_wait());
    close(ends[1]);
    EXPECT_THAT(message_of<DataError>([&] { reader.next(line); }), HasSubstr("it ends too early"));
    close(ends[0]);
  }
}

TEST(LineReader, WouldWaitWhereALineHasOnlyBegun) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LineReader reader("/dev/fd/" + std::to_string(ends[0]));
  ASSERT_EQ(write(ends[1], "one\n", 4), 4);
  std::string line;
  ASSERT_TRUE(reader.next(line));
  ASSERT_EQ(write(ends[1], "t", 1), 1);  // not read yet: the pipe has something, but no line
  EXPECT_TRUE(reader.would_wait());
  ASSERT_EQ(write(ends[1], "wo\nthree", 8), 8);
  EXPECT_FALSE(reader.would_wait());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_TRUE(reader.would_wait());
  close(ends[1]);
  EXPECT_FALSE(reader.would_wait());  // the end is an end of the line, too
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "three");
  EXPECT_FALSE(reader.would_wait());
  EXPECT_FALSE(reader.next(line));
  close(ends[0]);
}

}  // namespace
}  // namespace lacuna

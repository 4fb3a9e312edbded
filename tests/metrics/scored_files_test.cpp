#include <gmock/gmock.h>

#include "../base/packed.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/process.h"
#include "metrics/run_sacrebleu.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

std::string data_error(const std::vector<std::filesystem::path>& systems, const std::vector<std::filesystem::path>& references) {
  return message_of<DataError>([&] { ScoredFiles(systems, references); });
}

TEST(ScoredFiles, DifferentLineCountsAreBothNamed) {
  const Scratch scratch;
  const std::string message = data_error({scratch.write("hyp", "a\nb\n")}, {scratch.write("ref", "a\nb\nc\n")});
  EXPECT_THAT(message, HasSubstr("hyp has 2 lines"));
  EXPECT_THAT(message, HasSubstr("ref has 3"));
}

TEST(ScoredFiles, ALastLineNeedsNoLineBreak) {
  const Scratch scratch;
  EXPECT_EQ(ScoredFiles({scratch.write("hyp", "a\nb")}, {scratch.write("ref", "a\nb\n")}).num_lines(), 2);
}

TEST(ScoredFiles, AByteOrderMarkIsNotScored) {
  const Scratch scratch;
  const ScoredFiles files({scratch.write("hyp",
                                         "\xEF\xBB\xBF"
                                         "a\nb")},
                          {});
  EXPECT_EQ(bytes_of(files.systems().front()), "a\nb\n");
}

TEST(ScoredFiles, FilesOfOtherPackersAreNamedAsSuch) {
  const Scratch scratch;
  EXPECT_THAT(data_error({scratch.write("hyp",
                                        "\xFD"
                                        "7zXZ and more")},
                         {}),
              HasSubstr("hyp: is compressed with xz; decompress it"));
}

TEST(ScoredFiles, EmptyLinesCount) {
  const Scratch scratch;
  EXPECT_EQ(ScoredFiles({scratch.write("hyp", "\n\n")}, {scratch.write("ref", "a\nb\n")}).num_lines(), 2);
}

TEST(ScoredFiles, AnEmptyFileIsRefused) {
  const Scratch scratch;
  EXPECT_THAT(data_error({scratch.write("hyp", "")}, {scratch.write("ref", "")}), HasSubstr("hyp is empty"));
}

TEST(ScoredFiles, AMissingFileIsRefused) {
  EXPECT_THAT(data_error({"/no/such/file"}, {}), HasSubstr("/no/such/file: cannot be read: No such file"));
}

TEST(ScoredFiles, AFolderIsRefused) {
  const Scratch scratch;
  EXPECT_THAT(data_error({scratch.path()}, {}), HasSubstr("is a directory"));
}

TEST(ScoredFiles, InvalidUtf8IsNamedByLineAndByte) {
  const Scratch scratch;
  EXPECT_THAT(data_error({scratch.write("latin1",
                                        "good\nM\xFC"
                                        "ller\n")},
                         {}),
              HasSubstr("latin1:2: byte 2 is not UTF-8"));
  EXPECT_THAT(data_error({scratch.write("surrogate", "\xED\xA0\x80\n")}, {}), HasSubstr("surrogate:1: byte 1 is not UTF-8"));
  EXPECT_THAT(data_error({scratch.write("cut", "ab\xC3")}, {}), HasSubstr("cut:1: byte 3 is not UTF-8"));
}

TEST(ScoredFiles, ALineThatIsBadInOneFileIsLeftOutOfAll) {
  const Scratch scratch;
  const std::filesystem::path system = scratch.write("hyp", "a\n\xFF\nc\nd\n"), reference = scratch.write("ref", "A\nB\nC\n\xFF\n");
  const ScoredFiles files({system}, {reference}, "", OnBadLine::kSkip);
  EXPECT_EQ(files.num_lines(), 2);
  EXPECT_EQ(files.bad_lines(), 2);
  EXPECT_EQ(bytes_of(files.systems().front()), "a\nc\n");
  EXPECT_EQ(bytes_of(files.references().front()), "A\nC\n");
  EXPECT_EQ(ScoredFiles({system}, {system}, "", OnBadLine::kSkip).bad_lines(), 1);
}

TEST(ScoredFiles, AllOfUnicodeIsAccepted) {
  const Scratch scratch;
  EXPECT_EQ(ScoredFiles({scratch.write("hyp", "\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF\u2028\n")}, {}).num_lines(),
            1);
}

TEST(ScoredFiles, GzipUnderAnotherNameIsUnpacked) {
  const Scratch scratch;
  scratch.write("text", "a\nb\n");
  run_process({"gzip", (scratch.path() / "text").string()});
  std::filesystem::rename(scratch.path() / "text.gz", scratch.path() / "packed");
  const ScoredFiles files({scratch.path() / "packed"}, {});
  EXPECT_EQ(files.num_lines(), 2);
  EXPECT_EQ(bytes_of(files.systems().front()), "a\nb\n");
}

TEST(ScoredFiles, ZstdIsUnpackedWhateverItsName) {
  const Scratch scratch;
  for (const char* name : {"text.zst", "text", "text.gz"})
    EXPECT_EQ(bytes_of(ScoredFiles({scratch.write(name, zstd_of("a\nb\n"))}, {}).systems().front()), "a\nb\n");
}

TEST(ScoredFiles, PiecesAreJoinedOnBothSides) {
  const Scratch scratch;
  const ScoredFiles files({scratch.write("hyp", "low er\nb\n"), scratch.write("other", "low@@ er\nb\n")},
                          {scratch.write("ref", "low@@ er\nb@@\n")}, "@@");
  EXPECT_EQ(bytes_of(files.systems().front()), "low er\nb\n");
  EXPECT_EQ(bytes_of(files.systems().back()), "lower\nb\n");
  EXPECT_EQ(bytes_of(files.references().front()), "lower\nb\n");
}

TEST(ScoredFiles, GzipUnderItsNameIsLeftToSacrebleu) {
  const Scratch scratch;
  scratch.write("text", "a\nb\n");
  run_process({"gzip", (scratch.path() / "text").string()});
  const ScoredFiles files({scratch.path() / "text.gz"}, {});
  EXPECT_EQ(files.num_lines(), 2);
  EXPECT_EQ(files.systems().front(), scratch.path() / "text.gz");
}

/// The working folder for one test.
class WithinFolder {
 public:
  explicit WithinFolder(const std::filesystem::path& folder) { std::filesystem::current_path(folder); }
  ~WithinFolder() { std::filesystem::current_path(former_); }
  WithinFolder(const WithinFolder&) = delete;
  WithinFolder& operator=(const WithinFolder&) = delete;

 private:
  std::filesystem::path former_ = std::filesystem::current_path();
};

TEST(ScoredFiles, AFileNamedAsAnOptionIsNone) {
  const Scratch scratch;
  scratch.write("-x", "a b c d\n");
  const WithinFolder within(scratch.path());
  EXPECT_EQ(ScoredFiles({"-x"}, {"-x"}).systems().front(), "./-x");
}

TEST(ScoredFiles, TruncatedGzipIsRefused) {
  const Scratch scratch;
  scratch.write("text", "some text that packs to more than ten bytes\n");
  run_process({"gzip", (scratch.path() / "text").string()});
  std::filesystem::resize_file(scratch.path() / "text.gz", 30);
  EXPECT_THAT(data_error({scratch.path() / "text.gz"}, {}), HasSubstr("damaged gzip file"));
}

TEST(TemporaryFolder, AMissingPlaceForItIsReported) {
  const ScopedVariable place("TMPDIR", "/no/such/folder");
  EXPECT_THAT(message_of<MachineError>([] { TemporaryFolder(); }), HasSubstr("TMPDIR"));
}

TEST(WriteLines, ALineBreakInsideALineIsRefused) {
  const Scratch scratch;
  EXPECT_THAT(message_of<DataError>([&] { write_lines(scratch.path() / "lines", {"one", "two\nthree"}); }), HasSubstr("sentence 2"));
}

}  // namespace
}  // namespace lacuna

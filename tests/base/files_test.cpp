#include "base/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "child.h"
#include "scratch_folder.h"
#include "system_calls.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RequireReadableFile, SaysWhatIsMissing) {
  const ScratchFolder folder;
  const std::string message = message_of<DataError>([&] { require_readable_file(folder / "train.de", "source text"); });
  EXPECT_THAT(message, AllOf(HasSubstr(folder / "train.de"), HasSubstr("no such file"), HasSubstr("source text")));
}

TEST(RequireReadableFile, SaysThatAFolderIsNone) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { require_readable_file(folder.path(), "source text"); }), HasSubstr("is a folder"));
}

TEST(RequireReadableFile, SaysThatAFileIsEmpty) {
  const ScratchFolder folder;
  const std::string file = folder.write("empty", "");
  EXPECT_THAT(message_of<DataError>([&] { require_readable_file(file, "source text"); }), HasSubstr("is empty"));
}

TEST(RequireReadableFile, SaysWhyAFileCannotBeLookedAt) {
  const std::string name(5000, 'a');
  EXPECT_THAT(message_of<DataError>([&] { require_readable_file(name, "source text"); }), HasSubstr("File name too long"));
}

TEST(RequireReadableFile, SaysThatNoFileIsNamed) {
  EXPECT_THAT(message_of<DataError>([&] { require_readable_file("", "source text"); }), HasSubstr("no file is named"));
}

TEST(RequireReadableFile, SaysThatAFileMayNotBeRead) {
  constexpr uid_t kNobody = 65534;
  const ScratchFolder folder;
  const std::string file = folder.write("secret", "text");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  EXPECT_EQ(exit_code_of_child([&] {
              if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 1;  // root may read everything
              const std::string message = message_of<DataError>([&] { require_readable_file(file, "source text"); });
              return message == file + ": cannot be read (Permission denied); expected source text" ? 0 : 2;
            }),
            0);
}

TEST(UnnamedFile, IsReadByOtherProgramsAndLeavesNoName) {
  const ScratchFolder folder;
  const ScopedVariable place("TMPDIR", folder.path());
  const UnnamedFile file, other;
  EXPECT_NE(file.path(), other.path());
  write_bytes(file.path(), "some text");
  EXPECT_EQ(run_process({"cat", file.path().string(), file.path().string()}).output, "some textsome text");
  EXPECT_EQ(folder.num_entries(), 0u);
}

TEST(UnnamedFile, AMissingPlaceForItIsReported) {
  const ScopedVariable place("TMPDIR", "/no/such/folder");
  EXPECT_THAT(message_of<MachineError>([] { UnnamedFile(); }), HasSubstr("TMPDIR"));
}

TEST(ReadFile, GivesEveryByte) {
  const ScratchFolder folder;
  const std::string bytes("a\0\r\n\xFF", 5);
  EXPECT_EQ(read_file(folder.write("file", bytes)), bytes);
  EXPECT_EQ(read_file(folder.write("nothing", "")), "");
}

TEST(ReadFile, OfAFolderOrAMissingFileIsAnError) {
  const ScratchFolder folder;
  EXPECT_THROW(read_file(folder.path()), DataError);
  EXPECT_THAT(message_of<DataError>([&] { read_file(folder / "none"); }), HasSubstr("No such file"));
}

TEST(ReadFile, ThatFailsOnceItIsOpenSaysWhy) {
  const std::string file = "/proc/self/mem";  // nothing is at its first byte
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << " on this machine";
  EXPECT_THAT(message_of<MachineError>([&] { read_file(file); }), HasSubstr(file + ": cannot be read: Input/output error"));
}

TEST(ReadFile, GivesAFileThatDoesNotSayItsSize) {
  EXPECT_EQ(read_file("/proc/self/comm"), bytes_of("/proc/self/comm"));
  const ScratchFolder folder;
  const std::string bytes(300000, 'x');
  EXPECT_EQ(read_file(folder.write("long", bytes)), bytes);
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNothingElse) {
  const ScratchFolder folder;
  folder.write("file", "old");
  write_file_atomically(folder / "file", "new");
  EXPECT_EQ(bytes_of(folder / "file"), "new");
  EXPECT_EQ(folder.num_entries(), 1u);
}

/// The name that a file has while it is written next.
std::string temporary_name(const ScratchFolder& folder, const std::string& file) {
  const std::string last = FileReplacement(folder / file).temporary().filename().string();
  const size_t number = last.rfind('.') + 1;
  return last.substr(0, number) + std::to_string(std::stoull(last.substr(number)) + 1);
}

TEST(WriteFileAtomically, RemovesWhatKilledProcessesLeftOfTheSameFile) {
  const ScratchFolder folder;
  const std::string mark = ".lacuna-tmp.", here = WriterProcess().name().substr(0, 17), elsewhere = "0123456789abcdef.";
  const std::string dead = std::to_string(ended_process()) + ".0", living = std::to_string(getppid()) + ".0";
  folder.write("a" + mark + here + dead, "half");
  folder.write(temporary_name(folder, "a"), "half, of one that had the number of this process");
  folder.write("a" + mark + here + living, "of a process that lives");
  folder.write("a" + mark + elsewhere + dead, "of a process of another machine, and new");
  folder.write("b" + mark + here + dead, "of another file");
  folder.write("a" + mark + here + dead + "x", "of somebody else");
  folder.write("a" + mark + here + ".0", "of somebody else");
  write_file_atomically(folder / "a", "whole");
  EXPECT_FALSE(std::filesystem::exists(folder / ("a" + mark + here + dead)));
  EXPECT_EQ(folder.num_entries(), 6u);
}

TEST(WriteFileAtomically, ThatFailsKeepsTheOldFileAndLeavesNothingElse) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "file");
  EXPECT_THROW(write_file_atomically(folder / "file", "new"), MachineError);
  EXPECT_EQ(folder.num_entries(), 1u);
  EXPECT_THAT(message_of<MachineError>([&] { write_file_atomically(folder / "no/such/folder", "new"); }), HasSubstr("no/such/folder"));
}

TEST(WriteFileAtomically, KilledAtAnyMomentLeavesTheOldFileOrTheNewOne) {
  const ScratchFolder folder;
  const std::string old(1000, 'o'), fresh(3000000, 'n');
  folder.write("file", old);
  for (int microseconds = 0; microseconds < 4000; microseconds += 200) {
    const pid_t child = start_child([&] {
      write_file_atomically(folder / "file", fresh);
      return 0;
    });
    usleep(static_cast<useconds_t>(microseconds));
    kill_child(child);
    const std::string found = bytes_of(folder / "file");
    EXPECT_TRUE(found == old || found == fresh) << found.size() << " bytes";
  }
}

TEST(WriteFileAtomically, IsOnTheDiskBeforeTheNameAndTheNameBeforeItComesBack) {
  const ScratchFolder folder;
  const std::string temporary = temporary_name(folder, "a");
  const WatchedCalls watched(folder.path());
  write_file_atomically(folder / "a", "new");
  EXPECT_THAT(watched.calls, ElementsAre("fsync " + temporary, "rename " + temporary + " a", "fsync ."));
}

TEST(WriteFileAtomically, FollowsNoLinkThatStandsUnderItsTemporaryName) {
  const ScratchFolder folder;
  folder.write("of the user", "dear");
  std::filesystem::create_symlink(folder / "of the user", folder / temporary_name(folder, "a"));
  write_file_atomically(folder / "a", "new");
  EXPECT_EQ(bytes_of(folder / "of the user"), "dear");
  EXPECT_EQ(bytes_of(folder / "a"), "new");
  EXPECT_EQ(folder.num_entries(), 2u);
}

TEST(WriteFileAtomically, GivesANewFileThePermissionsThatTheUserWants) {
  const ScratchFolder folder;
  const mode_t before = umask(002);
  write_file_atomically(folder / "a", "new");
  umask(before);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder / "a").permissions()), 0664u);
}

TEST(WriteFileAtomically, ThatCannotBeSyncedKeepsTheOldFileAndLeavesNothingElse) {
  const ScratchFolder folder;
  folder.write("a", "old");
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call.starts_with("fsync a") ? EIO : 0; };
  EXPECT_THAT(message_of<MachineError>([&] { write_file_atomically(folder / "a", "new"); }),
              HasSubstr(folder / "a: cannot be written: Input/output error"));
  EXPECT_EQ(bytes_of(folder / "a"), "old");
  EXPECT_EQ(folder.num_entries(), 1u);
}

TEST(WriteFileAtomically, NeedsNoFileSystemThatCanSync) {
  const ScratchFolder folder;
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call.starts_with("fsync") ? EINVAL : 0; };
  write_file_atomically(folder / "a", "new");
  EXPECT_EQ(bytes_of(folder / "a"), "new");
}

TEST(FileReplacement, OfTheSameFileMayBeSeveralAtATime) {
  const ScratchFolder folder;
  FileReplacement first(folder / "a"), second(folder / "a");
  first.writer().write("first");
  second.writer().write("second");
  first.finish();
  EXPECT_EQ(bytes_of(folder / "a"), "first");
  second.finish();
  EXPECT_EQ(bytes_of(folder / "a"), "second");
  EXPECT_EQ(folder.num_entries(), 1u);
}

TEST(WriterProcess, IsKnownByItsName) {
  EXPECT_TRUE(WriterProcess::parse(WriterProcess().name())->is_this_process());
  EXPECT_EQ(WriterProcess::parse("0123456789abcdef.12")->name(), "0123456789abcdef.12");
  for (const char* name : {"", "12", "0123456789abcdef", "0123456789abcdef.", "0123456789abcdef12", "0123456789abcdef.0",
                           "0123456789abcdef.-1", "0123456789abcdef.12x", "0123456789abcdef.99999999999", "0123456789ABCDEF.12"})
    EXPECT_FALSE(WriterProcess::parse(name)) << name;
}

TEST(WriterProcess, IsGoneWhenItsProcessHasEndedOrElsewhereWhenNobodyHasTouchedWhatItMadeForLong) {
  const ScratchFolder folder;
  const std::string made = folder.write("made", ""), here = WriterProcess().name().substr(0, 17);
  const std::string dead = std::to_string(ended_process());
  EXPECT_FALSE(WriterProcess().is_gone(made));
  EXPECT_TRUE(WriterProcess::parse(here + dead)->is_gone(made));
  const auto elsewhere = WriterProcess::parse("0123456789abcdef." + dead);
  EXPECT_FALSE(elsewhere->is_gone(made));
  EXPECT_TRUE(elsewhere->is_gone(made, std::chrono::seconds(0)));
}

TEST(FileWriter, HasSyncedItsFileWhenItFinishes) {
  const ScratchFolder folder;
  const WatchedCalls watched(folder.path());
  FileWriter writer(folder / "a");
  writer.write("new");
  EXPECT_THAT(watched.calls, ElementsAre());
  writer.finish();
  EXPECT_THAT(watched.calls, ElementsAre("fsync a"));
}

TEST(FileWriter, GoesOnWithAFileAndShowsWhatWasFlushed) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "a";
  for (const char* const line : {"one\n", "two\n"}) {
    FileWriter writer(file, FileWriter::Begin::kAtEnd);
    writer.write(line);
    writer.flush();
    EXPECT_THAT(read_file(file), testing::EndsWith(line));
  }
  EXPECT_EQ(read_file(file), "one\ntwo\n");
  const FileWriter empty(file, FileWriter::Begin::kEmpty);
  EXPECT_EQ(read_file(file), "");
}

TEST(FileWriter, WritesPiecesOfAnySizeInTheirOrder) {
  const ScratchFolder folder;
  FileWriter writer(folder / "a");
  std::string all;
  for (const size_t size : {3, 262144, 0, 5, 200000, 100000, 262143, 1, 1000000, 7}) {
    const std::string piece(size, static_cast<char>('a' + all.size() % 26));
    writer.write(piece);
    all += piece;
  }
  writer.finish();
  EXPECT_EQ(bytes_of(folder / "a"), all);
}

TEST(FileWriter, SaysThatTheDiskIsFull) {
  EXPECT_THAT(message_of<MachineError>([] {
                FileWriter writer("/dev/full");
                writer.write(std::string(5000000, 'x'));
              }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left"), HasSubstr("5000000 bytes")));
}

TEST(FileWriter, SaysSoTooWhereTheDiskIsFullOnlyWhenTheFileIsSynced) {
  const ScratchFolder folder;
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call == "fsync a" ? ENOSPC : 0; };
  FileWriter writer(folder / "a");
  writer.write("new");
  EXPECT_THAT(message_of<MachineError>([&] { writer.finish(); }),
              HasSubstr("/a: cannot be written: No space left on device; free some space"));
}

TEST(FileReplacement, WritesOverAFileThatIsMountedByItself) {
  const ScratchFolder folder;
  folder.write("a", "an older and longer text");
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call.starts_with("rename") ? EBUSY : 0; };
  write_file_atomically(folder / "a", "new");
  EXPECT_EQ(bytes_of(folder / "a"), "new");
  EXPECT_EQ(folder.num_entries(), 1u);
  write_file_atomically(folder / "a", "");
  EXPECT_EQ(bytes_of(folder / "a"), "");
}

TEST(FileReplacement, KeepsTheNewFileWhereTheMountedOneCannotBeWrittenOver) {
  const ScratchFolder folder;
  folder.write("a", "old");
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call.starts_with("rename") ? EBUSY : call == "fsync a" ? ENOSPC : 0; };
  const std::string beside = folder / "a.lacuna-tmp.";
  std::string temporary;
  EXPECT_THAT(message_of<MachineError>([&] {
                FileReplacement file(folder / "a");
                temporary = file.temporary().string();
                file.writer().write("new");
                file.finish();
              }),
              HasSubstr("/a: cannot be written: No space left on device; free some space; all of it is in " + beside));
  EXPECT_EQ(bytes_of(temporary), "new");
}

TEST(FreeDiskSpace, IsThatOfTheNearestFolderThatIsThere) {
  const ScratchFolder folder;
  EXPECT_GT(free_disk_space(folder / "not/there/yet"), 0u);
}

TEST(FileReader, OfAnUntrustedFolderReadsFilesOfThatFolderAlone) {
  const ScratchFolder folder;
  const std::string file = folder.write("file", "bytes");
  EXPECT_EQ(FileReader::in_untrusted_folder(file).whole(5), "bytes");
  EXPECT_THAT(message_of<DataError>([&] { FileReader::in_untrusted_folder(file).whole(4); }),
              HasSubstr("/file: has 5 bytes; expected at most 4"));
  std::filesystem::create_symlink("file", folder / "link");
  std::filesystem::create_symlink("/dev/zero", folder / "zero");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  for (const std::string name : {"link", "zero", "pipe", "folder"})
    EXPECT_THAT(message_of<DataError>([&] { FileReader::in_untrusted_folder(folder / name); }),
                AllOf(HasSubstr("/" + name + ": is "), HasSubstr("expected a regular file")))
        << name;
  EXPECT_THAT(message_of<DataError>([&] { FileReader::in_untrusted_folder(folder / "none"); }), HasSubstr("No such file"));
}

TEST(DigestOf, IsTheLengthAndTheHashOfTheBytes) {
  const ScratchFolder folder;
  const std::string bytes(3000000, 'x');
  EXPECT_EQ(digest_of(folder.write("a", bytes)), (FileDigest{3000000, hash_of(bytes)}));
  EXPECT_EQ(digest_of(folder.write("b", "")), (FileDigest{0, hash_of("")}));
  EXPECT_THAT(message_of<DataError>([&] { digest_of(folder / "none"); }), HasSubstr("/none: cannot be read: No such file"));
  EXPECT_THAT(message_of<DataError>([&] { digest_of(folder.path()); }), HasSubstr("Is a directory"));
}

TEST(HashOfFiles, IsOfTheBytesAndTheLengthOfEach) {
  const ScratchFolder folder;
  const std::string long_text(3000000, 'x'), text = "text";
  ContentHash hash;
  for (const std::string& bytes : {long_text, std::string(), text}) hash.add(bytes);
  EXPECT_EQ(hash_of_files({folder.write("a", long_text), folder.write("b", ""), folder.write("c", text)}), hash.text());
}

TEST(HashOfFiles, SaysThatAFileHasNotTheLengthThatItHadAtFirst) {
  EXPECT_THAT(message_of<DataError>([] { hash_of_files({"/proc/self/status"}); }),  // 0 bytes, it says
              HasSubstr("/proc/self/status: it changed while it was read; start again"));
}

TEST(HashOfFiles, OfAFolderOrAMissingFileIsAnError) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { hash_of_files({folder.path().string()}); }), HasSubstr("Is a directory"));
  EXPECT_THAT(message_of<DataError>([&] { hash_of_files({folder / "none"}); }), HasSubstr("No such file"));
}

TEST(Utf8, AcceptsEveryLengthOfCharacter) {
  EXPECT_EQ(first_invalid_utf8("a\u00e4\u20ac\U0001F600\u2028\U0010FFFF"), std::nullopt);
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(first_invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(first_invalid_utf8("\xC0\xAF"), 0u) << "overlong";
  EXPECT_EQ(first_invalid_utf8("x\xE0\x80\xAF"), 1u) << "overlong";
  EXPECT_EQ(first_invalid_utf8("x\xED\xA0\x80"), 1u) << "surrogate";
  EXPECT_EQ(first_invalid_utf8("x\xF4\x90\x80\x80"), 1u) << "beyond U+10FFFF";
  EXPECT_EQ(first_invalid_utf8("\xE2\x82"), 0u) << "cut short";
  EXPECT_EQ(first_invalid_utf8("\x80"), 0u) << "continuation alone";
}

TEST(WriteFileAtomically, WritesIntoAPipeAndLeavesItThere) {
  const ScratchFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(is_replaceable(pipe));
  EXPECT_THAT(message_of<DataError>([&] { require_rereadable_file(pipe); }), HasSubstr("read more than once"));
  EXPECT_THAT(message_of<DataError>([&] { require_corpus_file(pipe, "source text"); }), HasSubstr("read more than once"));
  const pid_t reader = start_child([&] { return read_file(pipe) == "text" ? 0 : 1; });
  write_file_atomically(pipe, "text");
  EXPECT_EQ(exit_code_of(reader), 0);
  EXPECT_FALSE(is_replaceable(pipe));
  EXPECT_TRUE(is_replaceable(folder / "none"));
  EXPECT_NO_THROW(require_rereadable_file(folder / "none"));
}

/// UTF-8 by its definition: decode a code point the slow way and write it anew.
bool is_utf8_by_definition(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC0 ? 9 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 9;
    if (i + length > text.size()) return false;
    uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if (byte < 0x80 || byte > 0xBF) return false;
      code = code << 6 | (byte & 0x3Fu);
    }
    const size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (length != shortest || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

TEST(Utf8, AgreesWithTheDefinitionOnRandomBytes) {
  constexpr unsigned char kTelling[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                        0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFE, 0xFF, 0xA5};
  RandomStream random(1);
  for (int round = 0; round < 200000; ++round) {
    std::string text;
    for (uint64_t n = random.next_below(6); n > 0; --n) text += static_cast<char>(kTelling[random.next_below(std::size(kTelling))]);
    const auto bad = first_invalid_utf8(text);
    ASSERT_EQ(!bad.has_value(), is_utf8_by_definition(text));
    ASSERT_TRUE(is_utf8_by_definition(text.substr(0, bad.value_or(0))));
  }
}

}  // namespace
}  // namespace lacuna

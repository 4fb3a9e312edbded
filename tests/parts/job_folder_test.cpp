#include "parts/job_folder.h"

#include <gmock/gmock.h>

#include <thread>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/error.h"

namespace lacuna {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

JobFolder joined(const fs::path& folder, int64_t lines = 10, const std::string& model = "a") {
  return JobFolder::make_or_join(folder, {.lines = lines}, {{"model", model}}, {});
}

TEST(JobFolder, IsMadeOnceAndJoinedByTheSame) {
  const ScratchFolder folder;
  joined(folder / "job");
  const std::string made = bytes_of(folder / "job/job.json");
  EXPECT_EQ(joined(folder / "job").cut().lines, 10);
  EXPECT_EQ(bytes_of(folder / "job/job.json"), made);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "job"), fs::directory_iterator()), 1);
}

TEST(JobFolder, IsMadeOnceByManyAtOnce) {
  const ScratchFolder folder;
  std::vector<pid_t> children;
  for (int64_t i = 0; i < 16; ++i) {
    children.push_back(start_child([&] {
      try {
        joined(folder / "job", 10 + i % 2);
        return 0;
      } catch (const UsageError&) {
        return 2;
      }
    }));
  }
  std::vector<int> codes;
  for (const pid_t child : children) codes.push_back(exit_code_of(child));
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 8);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 2), 8);
}

TEST(JobFolder, RefusesAnotherJobWithBothValues) {
  const ScratchFolder folder;
  joined(folder / "job");
  EXPECT_THAT(message_of<UsageError>([&] { joined(folder / "job", 10, "b"); }), HasSubstr("model is \"a\" there, and \"b\" here"));
  EXPECT_THAT(message_of<UsageError>([&] { joined(folder / "job", 11); }), HasSubstr("part_lines is 10 there, and 11 here"));
}

TEST(JobFolder, RefusesAnInputThatHasChanged) {
  const ScratchFolder folder;
  const std::string text = folder.write("text", "one\ntwo\n");
  const JobFolder job = JobFolder::make_or_join(folder / "job", {.lines = 1}, {}, {{text, digest_of(text)}});
  job.require_same_inputs();
  folder.write("text", "one\n2wo\n");
  job.require_same_sizes();
  EXPECT_THAT(message_of<DataError>([&] { job.require_same_inputs(); }), HasSubstr("text: has changed since the job began"));
  folder.write("text", "one\n");
  EXPECT_THAT(message_of<DataError>([&] { job.require_same_sizes(); }), HasSubstr("text: has 4 bytes, and had 8 when the job began"));
}

TEST(JobFolder, KnowsItsPartsAndRefusesOthers) {
  const ScratchFolder folder;
  const JobFolder job = joined(folder / "job");
  EXPECT_EQ(job.known_parts(), std::nullopt);
  for (const int64_t part : {0, 1}) {
    job.write_record(part, {.lines = 10, .is_last = part == 1});
    write_bytes(job.part_file(part), "");
  }
  EXPECT_EQ(job.known_parts(), 2);
  EXPECT_EQ(job.part_file(1).filename(), "part-000001.zst");
  EXPECT_EQ(job.part_files().size(), 4);
  folder.write("job/part-000002.gz", "");
  EXPECT_THAT(message_of<DataError>([&] { job.part_files(); }), HasSubstr("part-000002.gz: is no part of the job"));
}

TEST(JobFolder, SaysWhatIsWrongWithARecord) {
  const ScratchFolder folder;
  const JobFolder job = joined(folder / "job");
  EXPECT_THAT(message_of<DataError>([&] { job.read_record(3); }), HasSubstr("part-000003.json"));
  for (const char* const text : {"", "[]", "{}", "{\"lines\": -1}"}) {
    folder.write("job/part-000003.json", text);
    EXPECT_THAT(message_of<DataError>([&] { job.read_record(3); }), HasSubstr("part-000003.json: is not what lacuna writes"));
  }
}

TEST(JobFolder, NoticesThatItWasRemovedOrBegunAnew) {
  const ScratchFolder folder;
  const JobFolder job = joined(folder / "job");
  job.require_in_place();
  fs::remove_all(folder / "job");
  EXPECT_THROW(job.require_in_place(), MachineError);
  joined(folder / "job", 11);
  EXPECT_THROW(job.require_in_place(), MachineError);
}

}  // namespace
}  // namespace lacuna

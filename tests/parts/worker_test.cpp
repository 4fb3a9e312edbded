#include "parts/worker.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "parts/status.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Writes the numbers of lines.
class Numbers : public PartMaker {
 public:
  explicit Numbers(int64_t lines, std::function<void(int64_t)> on_line = {}) : lines_(lines), on_line_(std::move(on_line)) {}

  bool go_to(int64_t line) override {
    line_ = std::min(line, lines_);
    return line < lines_;
  }
  int64_t line() const override { return line_; }
  PartRecord make(Output& output, int64_t lines, const std::function<void()>& look) override {
    PartRecord record;
    for (; record.lines < lines && line_ < lines_; ++record.lines) {
      look();
      if (on_line_) on_line_(line_);
      output.write(std::to_string(line_++) + "\n");
    }
    record.is_last = line_ == lines_;
    record.share_read = lines_ > 0 ? static_cast<double>(line_) / static_cast<double>(lines_) : 1;
    return record;
  }

 private:
  int64_t lines_, line_ = 0;
  std::function<void(int64_t)> on_line_;
};

JobFolder job_in(const fs::path& folder, double lease = 600) {
  return JobFolder::make_or_join(folder, {.lines = 10, .packing = "none", .lease = lease}, {}, {});
}

std::string numbers(int64_t lines) {
  std::string text;
  for (int64_t line = 0; line < lines; ++line) text += std::to_string(line) + "\n";
  return text;
}

std::string joined(const JobFolder& job, int64_t parts) {
  std::string text;
  for (int64_t part = 0; part < parts; ++part) text += bytes_of(job.part_file(part));
  return text;
}

TEST(Worker, MakesAllPartsWhereverTheTextEnds) {
  for (const int64_t lines : {0, 1, 9, 10, 11, 20, 95}) {
    const ScratchFolder folder;
    JobFolder job = job_in(folder / "job");
    Numbers maker(lines);
    const JobTotals totals = work_on(job, maker);
    EXPECT_EQ(totals.lines, lines);
    EXPECT_EQ(totals.parts, std::max<int64_t>(1, (lines + 9) / 10));
    EXPECT_EQ(joined(job, totals.parts), numbers(lines));
    EXPECT_TRUE(status_of(job).is_done());
  }
}

TEST(Worker, RemovesWhatEndedProcessesLeft) {
  const ScratchFolder folder;
  JobFolder job = job_in(folder / "job");
  const std::string name = WriterProcess().name(), machine = name.substr(0, name.find('.') + 1);
  const std::string running = machine + std::to_string(getppid()), ended = machine + "2147483647";
  folder.write("job/.now." + running, "");
  folder.write("job/.now." + ended, "");
  folder.write("job/part-00000.lacuna-tmp." + ended + ".0", "");
  Numbers maker(5);
  work_on(job, maker);
  EXPECT_TRUE(fs::exists(folder / ("job/.now." + running)));
  EXPECT_FALSE(fs::exists(folder / ("job/.now." + ended)));
  EXPECT_FALSE(fs::exists(folder / ("job/part-00000.lacuna-tmp." + ended + ".0")));
}

TEST(Worker, SharesTheWorkWithOthers) {
  const ScratchFolder folder;
  job_in(folder / "job");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start_child([&] {
      JobFolder job = job_in(folder / "job");
      Numbers maker(1005, [](int64_t) { usleep(50); });
      return work_on(job, maker).lines == 1005 ? 0 : 1;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
  const JobFolder job = job_in(folder / "job");
  EXPECT_EQ(joined(job, 101), numbers(1005));
}

TEST(Worker, TakesOverWhatAKilledOneHasLeft) {
  const ScratchFolder folder;
  const pid_t child = start_child([&] {
    JobFolder job = job_in(folder / "job");
    Numbers maker(30, [](int64_t line) {
      if (line == 15) pause();
    });
    work_on(job, maker);
    return 0;
  });
  ASSERT_TRUE(comes_true([&] { return fs::exists(folder / "job/part-000001.claim"); }));
  kill_child(child);
  JobFolder job = job_in(folder / "job");
  Numbers maker(30);
  EXPECT_EQ(work_on(job, maker).lines, 30);
  EXPECT_EQ(joined(job, 3), numbers(30));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "job"))
    EXPECT_THAT(entry.path().extension().string(), testing::AnyOf(".txt", ".json"));
}

TEST(Worker, ThatWasStoppedForLongGivesItsPartUp) {
  const ScratchFolder folder;
  constexpr double kShortLease = .5;
  const pid_t child = start_child([&] {
    JobFolder job = job_in(folder / "job", kShortLease);
    Numbers maker(30, [](int64_t line) {
      if (line == 15) raise(SIGSTOP);
    });
    return work_on(job, maker).lines == 30 ? 0 : 1;
  });
  ASSERT_TRUE(comes_true([&] { return fs::exists(folder / "job/part-000001.claim"); }));
  JobFolder job = job_in(folder / "job", kShortLease);
  Numbers maker(30);
  EXPECT_EQ(work_on(job, maker).lines, 30);
  kill(child, SIGCONT);
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(joined(job, 3), numbers(30));
}

TEST(Worker, LeavesAPartFreeThatCannotBeMade) {
  const ScratchFolder folder;
  JobFolder job = job_in(folder / "job");
  Numbers maker(30, [](int64_t line) {
    if (line == 15) throw DataError("line 15 is bad");
  });
  EXPECT_EQ(message_of<DataError>([&] { work_on(job, maker); }), "line 15 is bad");
  const JobStatus status = status_of(job);
  EXPECT_EQ(status.parts_done, 1);
  EXPECT_TRUE(status.running.empty());
  EXPECT_TRUE(status.stale.empty());
}

/// Its folder goes away as soon as the worker looks for the text of part 1.
class FolderGoes : public Numbers {
 public:
  explicit FolderGoes(fs::path folder) : Numbers(40), folder_(std::move(folder)) {}
  bool go_to(int64_t line) override {
    if (line == 10) fs::remove_all(folder_);
    return Numbers::go_to(line);
  }

 private:
  fs::path folder_;
};

TEST(Worker, SaysThatItsFolderHasGoneBetweenTwoParts) {
  const ScratchFolder folder;
  JobFolder job = job_in(folder / "job");
  FolderGoes maker(folder / "job");
  EXPECT_THAT(message_of<MachineError>([&] { work_on(job, maker); }), HasSubstr("job.json: was removed or replaced"));
}

TEST(Worker, RefusesPartsThatAreNotThoseOfTheText) {
  const ScratchFolder folder;
  JobFolder job = job_in(folder / "job");
  Numbers maker(25);
  work_on(job, maker);
  write_bytes(job.part_file(7), "");
  job.write_record(7, {.lines = 10, .is_last = false});
  Numbers again(25);
  EXPECT_THAT(message_of<DataError>([&] { work_on(job, again); }), testing::HasSubstr("part-000007.txt: is behind the last part, 2"));
}

}  // namespace
}  // namespace lacuna

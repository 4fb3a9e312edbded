#include "parts/worker.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/resources.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Thrown where a worker finds that its part is another's now.
class LostClaim : public Error {
 public:
  using Error::Error;
};

class Worker {
 public:
  Worker(JobFolder& job, PartMaker& maker) : job_(job), maker_(maker) {}

  JobTotals run() {
    try {
      return work();
    } catch (const MachineError&) {
      job_.require_in_place();  // of a folder that has gone, nothing else need be said
      throw;
    } catch (const DataError&) {
      job_.require_in_place();
      throw;
    }
  }

 private:
  JobTotals work() {
    total_ = job_.known_parts();
    while (!pass()) wait();
    const JobTotals totals = checked_totals();
    clean_up();
    return totals;
  }

  double now() {
    if (!clock_) clock_.emplace(job_.path());
    return clock_->now();
  }

  /// Makes all parts that are free. Returns true if none is missing then.
  bool pass() {
    held_.clear();
    for (int64_t part = 0; !total_ || part < *total_; ++part) {
      stop_if_interrupted(job_.path().string());
      if (part == JobFolder::kMostParts)
        throw DataError(fmt::format("{}: more than {} parts; expected larger ones (--part-lines)", job_.path().string(), part));
      if (is_done(part)) continue;
      if (const ClaimState claim = look_at_claim(job_.claim_file(part), now(), job_.cut().lease); claim.is_there && !claim.is_stale)
        held_.push_back(fmt::format("part {} ({})", part, claim.holder()));
      else if (!maker_.go_to(part * job_.cut().lines) && part > 0)
        total_ = std::max<int64_t>(1, (maker_.line() + job_.cut().lines - 1) / job_.cut().lines);
      else if (!make(part))
        held_.push_back(fmt::format("part {}", part));
    }
    return held_.empty();
  }

  bool is_done(int64_t part) {
    const auto at = static_cast<size_t>(part);
    if (done_.size() <= at) done_.resize(at + 1);
    return done_[at] = done_[at] || job_.has(part);
  }

  /// Makes a part. Returns false if another worker was faster to claim it, or has it now.
  bool make(int64_t part) {
    const std::unique_ptr<Claim> claim = Claim::try_take(job_.claim_file(part), now(), job_.cut().lease);
    if (claim == nullptr) return false;
    if (job_.has(part)) return true;  // done a moment ago
    const auto look = [&] {
      stop_if_interrupted(job_.path().string());
      job_.require_in_place();
      if (!claim->is_held()) throw LostClaim("");
    };
    try {
      write(part, look);
    } catch (const LostClaim&) {
      log_warning("{}: another worker has taken over part {}, as this one was stopped for longer than the lease of {:g} s",
                  job_.path().string(), part, job_.cut().lease);
      return false;
    }
    return true;
  }

  void write(int64_t part, const std::function<void()>& look) {
    const auto begin = std::chrono::steady_clock::now();
    Output output(job_.part_file(part));
    PartRecord record = maker_.make(output, job_.cut().lines, look);
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    record.host = host_name();
    if (record.is_last)
      job_.require_same_inputs();
    else
      job_.require_same_sizes();
    look();
    job_.write_record(part, record);
    try {
      output.finish();
    } catch (const MachineError&) {
      if (!job_.has(part)) throw;  // else another worker has made it, and removed what this one had written
    }
    if (record.is_last) total_ = part + 1;
    log_info("{}: part {}: {} in {:.1f} s", job_.path().string(), part, counted(record.lines, "line"), record.seconds);
  }

  void wait() {
    constexpr double kLongest = 5, kShareOfLease = .25;
    constexpr auto kStep = std::chrono::milliseconds(100);
    if (held_ != told_)
      log_info("{}: waits for {} of other workers: {}", job_.path().string(), counted(std::ssize(held_), "part"), join_first(held_));
    told_ = held_;
    const std::chrono::duration<double> pause(std::min(kLongest, job_.cut().lease * kShareOfLease));
    for (const auto end = std::chrono::steady_clock::now() + pause; std::chrono::steady_clock::now() < end;) {
      stop_if_interrupted(job_.path().string());
      std::this_thread::sleep_for(kStep);
    }
    job_.require_in_place();
  }

  /// Adds up the records. Throws DataError unless they are those of a whole text.
  JobTotals checked_totals() const {
    JobTotals totals = {.parts = *total_};
    for (int64_t part = 0; part < totals.parts; ++part) {
      const PartRecord record = job_.read_record(part);
      if (!job_.has(part))
        throw DataError(job_.part_file(part).string() + ": is gone, and was there; start a worker, which makes it again");
      const bool is_last = part + 1 == totals.parts;
      if (record.is_last != is_last || (!is_last && record.lines != job_.cut().lines) || record.lines > job_.cut().lines)
        throw DataError(fmt::format("{}: is part {} of {} and has {}; expected {}. Remove it and its record, and start a worker",
                                    job_.part_file(part).string(), part, totals.parts, counted(record.lines, "line"), job_.cut().lines));
      totals.lines += record.lines;
      totals.bad_lines += record.bad_lines;
    }
    for (const PartFile& file : job_.part_files())
      if (file.kind == PartFile::Kind::kPart && file.part >= totals.parts)
        throw DataError(fmt::format("{}: is behind the last part, {}; move it away, for part-*{} stands for the translation",
                                    job_.part_file(file.part).string(), totals.parts - 1, job_.extension()));
    return totals;
  }

  /// Removes what workers that were killed have left: all parts are there.
  void clean_up() const {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(job_.path(), ignored)) {
      const std::string name = entry.path().filename().string();
      const bool is_of_part =
          name.starts_with("part-") && (name.find(".lacuna-tmp.") != std::string::npos || name.find(".claim") != std::string::npos);
      if (is_of_part || FolderClock::is_left(entry.path())) fs::remove(entry.path(), ignored);
    }
  }

  JobFolder& job_;
  PartMaker& maker_;
  std::optional<FolderClock> clock_;  // once it is needed: a job that is done may be in a folder that nobody can write to
  std::optional<int64_t> total_;
  std::vector<bool> done_;
  std::vector<std::string> held_, told_;  // parts of others
};

}  // namespace

JobTotals work_on(JobFolder& job, PartMaker& maker) {
  return Worker(job, maker).run();
}

}  // namespace lacuna

#include "parts/status.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// Returns the file system's time or, in a folder that cannot be written to, this host's.
double time_at(const JobFolder& job) {
  try {
    return FolderClock(job.path()).now();
  } catch (const MachineError& error) {
    log_warning("{}; ages are by this host's clock", error.what());
    return static_cast<double>(std::time(nullptr));
  }
}

/// A part that is done.
struct DonePart {
  int64_t part;
  double time;  ///< when it was written, by the file system's clock
  PartRecord record;
};

std::vector<DonePart> done_parts(const JobFolder& job, const std::vector<PartFile>& files) {
  std::vector<DonePart> parts;
  for (const PartFile& file : files) {
    struct stat status = {};
    if (file.kind != PartFile::Kind::kPart || stat(job.part_file(file.part).c_str(), &status) != 0) continue;
    parts.push_back({file.part, static_cast<double>(status.st_mtim.tv_sec), job.read_record(file.part)});
  }
  return parts;
}

/// Sets the size of the whole text from the parts that are done.
void set_whole(JobStatus& status, const std::vector<DonePart>& done, int64_t lines_of_part) {
  const auto last = std::ranges::max_element(done, {}, [](const DonePart& one) { return one.part; });
  if (last == done.end()) return;
  const double lines_before = static_cast<double>(last->part * lines_of_part + last->record.lines);
  status.is_end_known = last->record.is_last;
  if (status.is_end_known)
    status.lines = lines_before;
  else if (last->record.share_read > 0)
    status.lines = lines_before / last->record.share_read;
  if (status.lines) status.parts = std::max(1.0, std::ceil(*status.lines / static_cast<double>(lines_of_part)));
}

/// Sets the rate by the parts that were done last, and the time left by it.
void set_rate(JobStatus& status, std::vector<DonePart> done, double now) {
  constexpr size_t kMostParts = 200, kPartsOfEach = 4;
  if (status.running.empty() || done.empty()) return;
  std::ranges::sort(done, std::ranges::greater(), [](const DonePart& one) { return one.time; });
  const size_t count = std::min({done.size(), kMostParts, kPartsOfEach * status.running.size()});
  double lines = 0, begin = now;
  for (size_t i = 0; i < count; ++i) {
    lines += static_cast<double>(done[i].record.lines);
    begin = std::min(begin, done[i].time - done[i].record.seconds);
  }
  if (count < done.size()) begin = done[count].time;
  status.lines_per_second = lines / std::max(1.0, now - begin);
  if (status.lines) status.seconds_left = std::max(0.0, *status.lines - static_cast<double>(status.lines_done)) / *status.lines_per_second;
}

std::string duration(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  return fmt::format("{:.1f} h", seconds / kHour);
}

std::string listed(const std::vector<JobStatus::Claimed>& claims, const char* idle) {
  std::string text;
  for (const auto& [part, claim] : claims)
    text += fmt::format("  part {}: {}, since {}, {} {} ago\n", part, claim.holder(),
                        claim.start.empty() ? "a time that is not known" : claim.start, idle, duration(claim.idle_seconds));
  return text;
}

nlohmann::ordered_json json_of(const std::vector<JobStatus::Claimed>& claims) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [part, claim] : claims)
    list.push_back(
        {{"part", part}, {"host", claim.host}, {"process", claim.process}, {"start", claim.start}, {"idle_seconds", claim.idle_seconds}});
  return list;
}

template <class T>
nlohmann::ordered_json or_none(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

JobStatus status_of(const JobFolder& job) {
  const std::vector<PartFile> files = job.part_files();
  std::vector<DonePart> done = done_parts(job, files);
  JobStatus status;
  status.folder = job.path().string();
  for (const DonePart& one : done) {
    status.lines_done += one.record.lines;
    status.bad_lines += one.record.bad_lines;
  }
  status.parts_done = std::ssize(done);
  set_whole(status, done, job.cut().lines);
  const double now = time_at(job);
  for (const PartFile& file : files) {
    if (file.kind != PartFile::Kind::kClaim || job.has(file.part)) continue;
    const ClaimState claim = look_at_claim(job.claim_file(file.part), now, job.cut().lease);
    if (claim.is_there) (claim.is_stale ? status.stale : status.running).push_back({file.part, claim});
  }
  for (auto* const claims : {&status.running, &status.stale}) std::ranges::sort(*claims, {}, &JobStatus::Claimed::part);
  set_rate(status, std::move(done), now);
  return status;
}

std::string JobStatus::text() const {
  const auto of_all = [this](int64_t count, const std::optional<double>& all) {
    return all ? fmt::format("{} of {}{:.0f}", count, is_end_known ? "" : "about ", *all) : std::to_string(count);
  };
  std::string text = folder + ": ";
  text += is_done() ? fmt::format("done, {}, {}\n", counted(parts_done, "part"), counted(lines_done, "line"))
                    : fmt::format("{} parts done, {} lines\n", of_all(parts_done, parts), of_all(lines_done, lines));
  if (bad_lines > 0) text += counted(bad_lines, "line") + " could not be taken and " + (bad_lines == 1 ? "was" : "were") + " passed over\n";
  if (is_done()) return text;
  std::map<std::string, int64_t> hosts;
  for (const Claimed& one : running) ++hosts[one.claim.host];
  text += running.empty() ? "nobody works on it\n"
                          : fmt::format("running: {} on {}\n", counted(std::ssize(running), "part"), counted(std::ssize(hosts), "host"));
  text += listed(running, "touched");
  if (!stale.empty())
    text += fmt::format("left by workers that ended or stopped: {}\n", counted(std::ssize(stale), "part")) + listed(stale, "last touched");
  if (lines_per_second)
    text += fmt::format("{:.1f} lines/s{}\n", *lines_per_second, seconds_left ? ", " + duration(*seconds_left) + " left" : "");
  return text;
}

nlohmann::ordered_json JobStatus::json() const {
  return {{"folder", folder},
          {"is_done", is_done()},
          {"parts_done", parts_done},
          {"lines_done", lines_done},
          {"bad_lines", bad_lines},
          {"parts", or_none(parts)},
          {"lines", or_none(lines)},
          {"is_end_known", is_end_known},
          {"running", json_of(running)},
          {"stale", json_of(stale)},
          {"lines_per_second", or_none(lines_per_second)},
          {"seconds_left", or_none(seconds_left)}};
}

}  // namespace lacuna

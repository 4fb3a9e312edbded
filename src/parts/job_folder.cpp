#include "parts/job_folder.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/spelling.h"
#include "base/system_error.h"
#include "parts/input_digest.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr char kLines[] = "part_lines", kPacking[] = "part_packing", kLease[] = "lease", kPartPrefix[] = "part-";
constexpr char kTemporaryMark[] = ".lacuna-tmp.";
constexpr uint64_t kMostJobBytes = 1 << 20;

std::string shown(const ordered_json& terms, const std::string& key) {
  const auto found = terms.find(key);
  return found == terms.end() ? "missing" : json_text(*found);
}

/// Throws UsageError for keys whose values differ.
void require_same_terms(const fs::path& file, const ordered_json& job, const ordered_json& mine) {
  std::vector<std::string> differences;
  const auto look = [&](const std::string& key) {
    if (shown(job, key) != shown(mine, key))
      differences.push_back(fmt::format("{} is {} there, and {} here", key, shown(job, key), shown(mine, key)));
  };
  for (const auto& entry : mine.items()) look(entry.key());
  for (const auto& entry : job.items())
    if (!mine.contains(entry.key())) look(entry.key());
  if (differences.empty()) return;
  throw UsageError(
      fmt::format("{}: another job: {}. All workers of a job have the same version, models, options and input; start this one like "
                  "the others, or name another folder",
                  file.string(), join_first(differences)));
}

/// Returns the number in "part-000017" and what follows it; none if the name is another one.
std::optional<std::pair<int64_t, std::string>> number_and_end(const std::string& name) {
  constexpr size_t kDigits = 6, kBegin = sizeof kPartPrefix - 1;
  if (!name.starts_with(kPartPrefix) || name.size() < kBegin + kDigits) return {};
  int64_t number = 0;
  const char* const first = name.data() + kBegin;
  const auto [end, error] = std::from_chars(first, first + kDigits, number);
  if (error != std::errc() || end != first + kDigits || number < 0) return {};
  return std::pair(number, name.substr(kBegin + kDigits));
}

}  // namespace

JobFolder JobFolder::make_or_join(const fs::path& folder, const PartTerms& cut, const ordered_json& terms, std::vector<JobInput> inputs) {
  JobFolder job(folder, std::move(inputs));
  ordered_json mine = {{kLines, cut.lines}, {kPacking, cut.packing}, {kLease, cut.lease}};
  for (const auto& entry : terms.items()) mine[entry.key()] = entry.value();
  for (const auto& input : job.inputs_) {
    const std::string key = job.inputs_.size() == 1 ? "input" : fmt::format("input_{}", &input - job.inputs_.data() + 1);
    mine[key] = fmt::format("{} bytes, sampled XXH3-128 {}", input.digest.bytes, input.digest.xxh3_128);
  }
  make_output_folder(folder);
  ordered_json there;
  if (!job.read(there)) {
    job.make(mine);
    if (!job.read(there))
      throw MachineError(job.job_file().string() + ": is gone a moment after it was made; expected a folder that stays");
  }
  require_same_terms(job.job_file(), there, mine);
  return job;
}

JobFolder JobFolder::open(const fs::path& folder) {
  JobFolder job(folder, {});
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw DataError(folder.string() + ": there is no such folder; expected one of a job in parts");
  ordered_json ignored;
  if (!job.read(ignored)) throw DataError(folder.string() + ": has no job.json; expected the folder of a job in parts (--part-lines)");
  return job;
}

bool JobFolder::read(ordered_json& terms) {
  const fs::path file = job_file();
  std::error_code error;
  if (!fs::exists(file, error)) return false;
  text_ = FileReader::in_untrusted_folder(file).whole(kMostJobBytes);
  try {
    terms = parsed_json<ordered_json>(text_);
    cut_.lines = natural_number(terms.at(kLines));
    cut_.packing = terms.at(kPacking).get<std::string>();
    cut_.lease = terms.at(kLease).get<double>();
    if (cut_.lines > 0 && cut_.lease > 0 && !extension().empty()) return true;
  } catch (const nlohmann::json::exception&) {
  }
  throw DataError(file.string() + ": is not what lacuna writes; expected the job of a text in parts. Name another folder");
}

void JobFolder::make(const ordered_json& terms) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    std::error_code error;
    if (entry.path().filename().string().starts_with(kPartPrefix) && !fs::exists(job_file(), error))
      throw DataError(entry.path().string() + ": is there, and no job.json beside it; expected a folder without parts of another job");
  }
  // Whole under a name of its own, then linked: of several workers that do so at once, one makes the job.
  FileReplacement file(job_file());
  file.writer().write(json_text(terms, 2) + "\n");
  file.sync();
  if (link(file.temporary().c_str(), job_file().c_str()) == 0)
    sync_folder_or_warn(folder_);
  else if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
    throw MachineError(job_file().string() + ": cannot be made: the file system has no hard links; expected one that has");
  else if (errno != EEXIST)
    fail_to_write(job_file(), 0);
}

std::string JobFolder::extension() const {
  if (cut_.packing == "none") return ".txt";
  return cut_.packing == "zst" || cut_.packing == "gz" ? "." + cut_.packing : "";
}

fs::path JobFolder::file_of(int64_t part, const std::string& end) const {
  return folder_ / fmt::format("{}{:06}{}", kPartPrefix, part, end);
}

bool JobFolder::has(int64_t part) const {
  std::error_code error;
  return fs::exists(part_file(part), error);
}

void JobFolder::write_record(int64_t part, const PartRecord& record) const {
  const ordered_json json = {{"lines", record.lines},           {"bad_lines", record.bad_lines}, {"is_last", record.is_last},
                             {"share_read", record.share_read}, {"seconds", record.seconds},     {"host", record.host}};
  write_file_atomically(file_of(part, ".json"), json_text(json) + "\n");
}

PartRecord JobFolder::read_record(int64_t part) const {
  const fs::path file = file_of(part, ".json");
  try {
    const auto json = parsed_json(FileReader::in_untrusted_folder(file).whole(kMostJobBytes));
    return {.lines = natural_number(json.at("lines")),
            .bad_lines = natural_number(json.at("bad_lines")),
            .is_last = json.at("is_last").get<bool>(),
            .share_read = json.at("share_read").get<double>(),
            .seconds = json.at("seconds").get<double>(),
            .host = json.at("host").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    throw DataError(file.string() + ": is not what lacuna writes; remove it and " + part_file(part).filename().string() +
                    ", and start a worker");
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + ". Remove " + part_file(part).string() + ", whose record it is, and start a worker");
  }
}

std::vector<PartFile> JobFolder::part_files() const {
  std::vector<PartFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPartPrefix) || name.find(kTemporaryMark) != std::string::npos) continue;
    const auto found = number_and_end(name);
    const std::string end = found ? found->second : "";
    if (end.starts_with(".claim.")) continue;  // one that takes over
    if (found && end == extension())
      files.push_back({PartFile::Kind::kPart, found->first});
    else if (found && end == ".json")
      files.push_back({PartFile::Kind::kRecord, found->first});
    else if (found && end == ".claim")
      files.push_back({PartFile::Kind::kClaim, found->first});
    else
      throw DataError(entry.path().string() + ": is no part of the job; move it away, for part-* stands for the parts");
  }
  if (error) fail_by(error.value(), folder_.string() + ": cannot be read: ");
  return files;
}

std::optional<int64_t> JobFolder::known_parts() const {
  int64_t last = -1;
  for (const PartFile& file : part_files())
    if (file.kind == PartFile::Kind::kPart) last = std::max(last, file.part);
  return last >= 0 && read_record(last).is_last ? std::optional(last + 1) : std::nullopt;
}

void JobFolder::require_in_place() const {
  std::error_code error;
  if (fs::exists(job_file(), error) && FileReader::in_untrusted_folder(job_file()).whole(kMostJobBytes) == text_) return;
  throw MachineError(job_file().string() + ": was removed or replaced while this worker was at the job; start it again");
}

void JobFolder::require_same_sizes() const {
  for (const JobInput& input : inputs_) {
    const uint64_t bytes = FileReader(input.path).size();
    if (bytes != input.digest.bytes)
      throw DataError(fmt::format("{}: has {} bytes, and had {} when the job began; expected an input that nobody changes",
                                  input.path.string(), bytes, input.digest.bytes));
  }
}

void JobFolder::require_same_inputs() const {
  require_same_sizes();
  for (const JobInput& input : inputs_)
    if (sampled_digest_of(input.path) != input.digest)
      throw DataError(input.path.string() + ": has changed since the job began; expected an input that nobody changes");
}

}  // namespace lacuna

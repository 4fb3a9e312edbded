#include "train/run_takeover.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "checkpoint/run_folder.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Throws DataError for a pipe, a socket or a device in a run folder: to open it as one of the run's files may take for ever.
void require_files_and_folders(const std::string& run) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error))
    if (fs::is_other(entry.status(error)))
      throw DataError(entry.path().string() + ": is a pipe, a socket or a device; a run folder holds files and folders only. Remove it");
}

fs::path lock_of(const std::string& run) {
  std::error_code error;
  fs::create_directories(run, error);
  if (error) throw MachineError("cannot make the run folder " + run + ": " + error.message());
  require_files_and_folders(run);
  return fs::path(run) / run_files::kLock;
}

/// Returns what the start that works in a run folder has written into the lock's file; empty if there is none.
std::string holder_of(const std::string& run) {
  std::ifstream file(fs::path(run) / run_files::kLock, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns a text that no other start has: the process, and random digits.
std::string new_start() {
  std::random_device random;
  return WriterProcess().name() + "." + std::to_string(random()) + "\n";
}

/// Files and folders of results that training writes beside the checkpoints.
constexpr const char* kResults[] = {run_files::kAveraged, run_files::kBest,        run_files::kLast,    run_files::kValid,
                                    run_files::kTest,     run_files::kTensorboard, run_files::kMetrics, run_files::kBadBatch};

/// Returns the paths that a run writes in its folder; the configuration and the log, which make it one, come last.
std::vector<fs::path> parts_of_run(const fs::path& run) {
  std::vector<fs::path> parts;
  for (const std::string& path : checkpoint_paths_of(run.string())) parts.emplace_back(path);
  const auto add = [&](const std::string& name) { parts.push_back(run / name); };
  for (const char* const name : kResults) add(name);
  add(run_files::kCache);
  add(run_files::kRejects);
  for (const std::string model : run_files::kSpmModels) {
    add(model);
    add(model + run_files::kTrainingNote);
  }
  add(run_files::kConfig);
  add(run_files::kLog);
  return parts;
}

/// True if `path` is `folder` or lies in it, links followed.
bool is_within(const fs::path& path, const fs::path& folder) {
  const auto real = [](const fs::path& place) { return fs::weakly_canonical(fs::absolute(place)); };
  const fs::path relative = real(path).lexically_relative(real(folder));
  return !relative.empty() && *relative.begin() != "..";
}

/// True if `path` is a part of the run, or the run itself, which stands for its best checkpoint.
bool belongs_to_run(const fs::path& run, const fs::path& path) {
  const std::vector<fs::path> parts = parts_of_run(run);
  const bool is_run = is_within(run, path) && is_within(path, run);
  return is_run || std::any_of(parts.begin(), parts.end(), [&](const fs::path& part) { return is_within(path, part); });
}

}  // namespace

RunLock::RunLock(const std::string& run, std::chrono::duration<double> patience) : run_(run), start_(new_start()), lock_(lock_of(run)) {
  // A child of a killed process, which trained its vocabulary, holds the lock until the system has ended it, too.
  constexpr std::chrono::duration<double> kOfAnEndingChild = std::chrono::seconds(2);
  if (!lock_.take_within(std::max(patience, kOfAnEndingChild), "waiting for another process that works in " + run))
    throw ConfigError(run + " is in use: another process trains in it, or makes an ablation. Wait for it, or set `run` to another folder");
  lock_.write(start_);
  is_written_ = lock_.read() == start_;
  require_in_place();
}

void RunLock::require_in_place() const {
  const bool is_in_place = lock_.is_in_place();
  if (is_in_place && is_written_ && lock_.read() != start_)
    throw MachineError(run_ +
                       ": another start of this run works there, and took this process for dead (it was stopped, or its machine cut off "
                       "from the disk). The work ends here, and nothing is written");
  if (is_in_place) return;
  throw MachineError(run_ + " is not the folder any more that this process works in: it, or its file " + run_files::kLock +
                     ", was removed, renamed or replaced. The work ends here, and nothing is written; the same command goes on where "
                     "the folder now there stands, or begins anew");
}

std::function<bool()> RunLock::is_alone_there() const {
  if (!is_written_) return [] { return true; };
  return [run = run_, start = start_] {
    const std::string holder = holder_of(run);
    return holder.empty() || holder == start;
  };
}

bool is_folder_of(const std::string& start, const std::string& run) {
  return holder_of(run) == start;
}

void require_room_for_run(const std::string& run) {
  const fs::path folder(run);
  if (!newest_checkpoint_of(run).empty() || fs::exists(folder / run_files::kConfig) || fs::exists(folder / run_files::kLog)) return;
  for (const char* const name : kResults)
    if (fs::exists(fs::symlink_status(folder / name)))
      throw ConfigError(run + " holds no run, but " + name +
                        ", where training would write. Set `run` to another folder, or move that away");
}

void require_start_outside(const Options& options) {
  const DataOptions& data = options.data;
  std::vector<std::pair<std::string, std::string>> starts = {{"train.init_from", options.train.init_from},
                                                             {"data.spm_model", data.spm_model},
                                                             {"data.src_spm_model", data.src_spm_model},
                                                             {"data.tgt_spm_model", data.tgt_spm_model},
                                                             {"data.vocab", data.vocab},
                                                             {"data.src_vocab", data.src_vocab},
                                                             {"data.tgt_vocab", data.tgt_vocab},
                                                             {"translate.shortlist", options.translate.shortlist}};
  const auto add = [&](const std::string& key, const std::vector<CorpusOptions>& corpora) {
    for (const CorpusOptions& corpus : corpora)
      for (const auto& [file, what] : corpus.files()) starts.emplace_back(key, file);
  };
  add("data.train", data.train);
  add("data.valid", data.valid);
  add("data.test", data.test);
  for (const auto& [key, path] : starts)
    if (!path.empty() && belongs_to_run(options.run, path))
      throw ConfigError(key + " is " + path + ", a part of the run in " + options.run +
                        " that train.overwrite is to remove. Set `run` to another folder, or name a copy");
}

RunReplacement::RunReplacement(const Options& options)
    : run_(options.run), cache_(options.data.cache), staged_(fs::path(options.run) / "new") {}

void RunReplacement::take_place() const {
  try {
    for (const std::string& path : checkpoint_paths_of(run_)) remove_folder(path);
    for (const fs::path& part : parts_of_run(run_))
      if (cache_.empty() || !is_within(cache_, part)) fs::remove_all(part);
    std::vector<fs::path> written;
    for (const fs::directory_entry& entry : fs::directory_iterator(staged_.path())) written.push_back(entry.path());
    std::sort(written.begin(), written.end(), std::greater<>());  // the log first, and the note of a vocabulary before the vocabulary
    for (const fs::path& path : written) fs::rename(path, fs::path(run_) / path.filename());
  } catch (const fs::filesystem_error& error) {
    throw MachineError(run_ + ": the run there cannot be replaced: " + error.path1().string() + ": " + error.code().message());
  }
  sync_folder(run_);
}

}  // namespace lacuna

#include "checkpoint/run_folder.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/process.h"
#include "base/spelling.h"
#include "base/system_error.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  int64_t step = 0;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || step < 0) return {};
  return step;
}

/// Returns the steps of the `step_N` that hold something, or of those that are empty.
std::vector<int64_t> steps_of(const std::string& run, bool are_empty = false) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().string());
    if (step && entry.is_directory(error) && fs::is_empty(entry.path(), error) == are_empty) steps.push_back(*step);
  }
  if (error && !is_users_mistake(error.value())) throw MachineError(run + ": cannot be read: " + error.message());
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// Returns nothing if the checkpoint is damaged, which is reported to `on_damage`.
std::optional<CheckpointInfo> info_of(const std::string& path, const DamageHandler& on_damage) {
  try {
    return read_checkpoint_info(path);
  } catch (const CheckpointError& error) {
    if (!fs::exists(path)) return {};  // a run that trains has removed it since it was listed
    if (!on_damage) throw;
    on_damage(error.what());
    return {};
  }
}

/// Returns true if a folder is a copy of a `step_N` of the run.
bool is_copy_of_another(const std::string& folder, const std::string& run) {
  if (!is_checkpoint(folder)) return false;
  const std::string other = checkpoint_path(run, read_checkpoint_info(folder).step);
  return is_checkpoint(other) && hash_of_weights(folder) == hash_of_weights(other);
}

[[noreturn]] void fail_without_checkpoints(const std::string& run) {
  throw CheckpointError(run + " holds no checkpoints (folders named step_N)");
}

/// Returns what shows that a model of transformers or Marian is at the path, which `lacuna import` reads; empty if nothing does.
std::string sign_of_other_program(const fs::path& path) {
  std::error_code error;
  const auto is_of_marian = [](const fs::path& file) { return file.extension() == ".npz"; };
  if (fs::is_regular_file(path, error) && is_of_marian(path)) return "of Marian: its name ends in .npz";
  if (fs::exists(path / "config.json", error))
    for (const char* const weights :
         {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
      if (fs::exists(path / weights, error)) return std::string("of transformers: it has config.json and ") + weights;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (is_of_marian(entry->path())) return "of Marian: it has " + entry->path().filename().string();
  return "";
}

std::string known_scores(const std::vector<RunCheckpoint>& checkpoints) {
  std::vector<std::string> names;
  for (const auto& [name, value] : checkpoints.back().info.scores) names.push_back(name);
  return names.empty() ? "none" : join(names);
}

}  // namespace

std::string checkpoint_path(const std::string& run, int64_t step) {
  return (fs::path(run) / (std::string(kPrefix) + std::to_string(step))).string();
}

std::string averaged_path(const std::string& run) {
  return (fs::path(run) / run_files::kAveraged).string();
}

void link_checkpoint(const std::string& run, const std::string& name, int64_t step) {
  const fs::path link = fs::path(run) / name;
  if (fs::is_directory(fs::symlink_status(link))) {
    if (!is_copy_of_another(link.string(), run))
      throw CheckpointError(link.string() + " is a folder; expected a link to a checkpoint of the run (step_N). Move the folder away");
    remove_folder(link);
  }
  replace_link(link, fs::path(checkpoint_path(run, step)).filename().string());
}

std::vector<RunCheckpoint> checkpoints_of(const std::string& run, const DamageHandler& on_damage) {
  std::vector<RunCheckpoint> checkpoints;
  for (const int64_t step : steps_of(run)) {
    const std::string path = checkpoint_path(run, step);
    if (std::optional<CheckpointInfo> info = info_of(path, on_damage)) checkpoints.push_back({step, path, std::move(*info)});
  }
  return checkpoints;
}

std::vector<std::string> checkpoint_paths_of(const std::string& run) {
  std::vector<std::string> paths;
  for (const int64_t step : steps_of(run)) paths.push_back(checkpoint_path(run, step));
  return paths;
}

std::vector<std::string> empty_checkpoints_of(const std::string& run) {
  std::vector<std::string> paths;
  for (const int64_t step : steps_of(run, /*are_empty=*/true)) paths.push_back(checkpoint_path(run, step));
  return paths;
}

std::string newest_checkpoint_of(const std::string& run) {
  const std::vector<std::string> paths = checkpoint_paths_of(run);
  return paths.empty() ? "" : paths.back();
}

uint64_t bytes_of_checkpoints(const std::string& run) {
  uint64_t bytes = 0;
  for (const std::string& path : checkpoint_paths_of(run))
    for (const fs::directory_entry& file : fs::directory_iterator(path))
      if (file.is_regular_file()) bytes += file.file_size();
  return bytes;
}

std::string resolve_checkpoint(const std::string& path) {
  constexpr int kTries = 3;  // what a link led to may go while it is followed, and then it leads elsewhere
  for (int tries = 0; tries < kTries; ++tries) {
    if (is_checkpoint(path)) return path;
    for (const char* const name : {run_files::kAveraged, run_files::kBest, run_files::kLast})
      if (std::string checkpoint = (fs::path(path) / name).string(); is_checkpoint(checkpoint)) return checkpoint;
  }
  if (const std::string found = sign_of_other_program(path); !found.empty())
    throw CheckpointError(path + " is a model " + found + "; expected a checkpoint or a run folder. Make one of it: lacuna import " +
                          shell_word(path) + " -o DIR");
  if (!fs::is_directory(path))
    throw CheckpointError(path + (fs::exists(path) ? " is a file" : " does not exist") +
                          "; expected a run folder, or the folder of a checkpoint such as RUN/best");
  throw CheckpointError(path +
                        " is neither a checkpoint (it has no manifest.json) nor a run folder with one (averaged, best or last). "
                        "Has the run saved its first checkpoint?");
}

std::string standing_of(const std::string& path) {
  std::string text;
  const auto add = [&text](const fs::path& folder) {
    struct stat status = {};
    std::error_code error;
    if (stat(folder.c_str(), &status) != 0) return;
    text += fmt::format("{} {} {} {}.{}\n", fs::canonical(folder, error).string(), status.st_dev, status.st_ino, status.st_ctim.tv_sec,
                        status.st_ctim.tv_nsec);
  };
  add(path);
  for (const char* const name : {run_files::kAveraged, run_files::kBest, run_files::kLast}) add(fs::path(path) / name);
  for (const std::string& step : checkpoint_paths_of(path)) add(step);
  return text;
}

std::string checkpoint_to_score(const Options& options) {
  const fs::path run(options.run), best = run / run_files::kBest;
  if (options.train.average_last > 0) return averaged_path(options.run);
  return (fs::exists(best) ? best : run / run_files::kLast).string();
}

std::vector<RunCheckpoint> by_score(const std::vector<RunCheckpoint>& checkpoints, const std::string& score, bool lower_is_better) {
  std::vector<RunCheckpoint> scored;
  for (const RunCheckpoint& checkpoint : checkpoints)
    if (checkpoint.info.scores.contains(score)) scored.push_back(checkpoint);
  const double sign = lower_is_better ? -1 : 1;
  std::stable_sort(scored.begin(), scored.end(), [&](const RunCheckpoint& a, const RunCheckpoint& b) {
    return sign * a.info.scores.at(score) > sign * b.info.scores.at(score);
  });
  return scored;
}

std::vector<std::string> last_checkpoints(const std::string& run, int64_t count, const DamageHandler& on_damage) {
  const std::vector<int64_t> steps = steps_of(run);
  if (steps.empty()) fail_without_checkpoints(run);
  std::vector<std::string> paths;
  for (auto step = steps.rbegin(); step != steps.rend() && static_cast<int64_t>(paths.size()) < count; ++step) {
    const std::string path = checkpoint_path(run, *step);
    const std::optional<CheckpointInfo> info = info_of(path, on_damage);
    if (info && info->is_scheduled) paths.push_back(path);
  }
  if (paths.empty())
    throw CheckpointError(run + " holds no scheduled checkpoint yet; " + checkpoint_path(run, steps.back()) +
                          " is of an interruption or a validation: name checkpoints themselves, or take --best");
  std::reverse(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> best_checkpoints(const std::string& run, int64_t count, const std::string& score, bool lower_is_better) {
  const std::vector<RunCheckpoint> all = checkpoints_of(run);
  if (all.empty()) fail_without_checkpoints(run);
  const std::vector<RunCheckpoint> scored = by_score(all, score, lower_is_better);
  if (scored.empty()) throw CheckpointError("no checkpoint of " + run + " has the score " + score + "; scores there: " + known_scores(all));
  std::vector<std::string> paths;
  for (const RunCheckpoint& checkpoint : scored)
    if (static_cast<int64_t>(paths.size()) < count) paths.push_back(checkpoint.path);
  return paths;
}

}  // namespace lacuna

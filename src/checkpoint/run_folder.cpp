#include "checkpoint/run_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "checkpoint/manifest.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";

std::optional<int64_t> step_of(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return {};
  int64_t step = 0;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || stop != end || step < 0) return {};
  return step;
}

std::vector<int64_t> steps_of(const std::string& run) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().string());
    if (step && entry.is_directory()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool is_checkpoint(const fs::path& path) {
  return fs::exists(path / Manifest::kFileName);
}

std::string known_scores(const std::vector<RunCheckpoint>& checkpoints) {
  std::string names;
  for (const auto& [name, value] : checkpoints.back().info.scores) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

}  // namespace

std::string checkpoint_path(const std::string& run, int64_t step) {
  return (fs::path(run) / (std::string(kPrefix) + std::to_string(step))).string();
}

std::vector<RunCheckpoint> checkpoints_of(const std::string& run, const std::function<void(const std::string&)>& on_damage) {
  std::vector<RunCheckpoint> checkpoints;
  for (const int64_t step : steps_of(run)) {
    const std::string path = checkpoint_path(run, step);
    try {
      checkpoints.push_back({step, path, read_checkpoint_info(path)});
    } catch (const CheckpointError& error) {
      if (!on_damage) throw;
      on_damage(error.what());
    }
  }
  return checkpoints;
}

std::vector<std::string> checkpoint_paths_of(const std::string& run) {
  std::vector<std::string> paths;
  for (const int64_t step : steps_of(run)) paths.push_back(checkpoint_path(run, step));
  return paths;
}

std::string newest_checkpoint_of(const std::string& run) {
  const std::vector<std::string> paths = checkpoint_paths_of(run);
  return paths.empty() ? "" : paths.back();
}

std::string resolve_checkpoint(const std::string& path) {
  if (is_checkpoint(path) || !fs::is_directory(path)) return path;  // what is no folder, Manifest::read has words for
  for (const char* const name : {"averaged", "best", "last"})
    if (is_checkpoint(fs::path(path) / name)) return (fs::path(path) / name).string();
  throw CheckpointError(path +
                        " is neither a checkpoint (it has no manifest.json) nor a run folder with one (averaged, best or last). "
                        "Has the run saved its first checkpoint?");
}

std::vector<std::string> last_checkpoints(const std::string& run, int64_t count) {
  std::vector<std::string> paths;
  const std::vector<int64_t> steps = steps_of(run);
  for (auto step = steps.rbegin(); step != steps.rend() && static_cast<int64_t>(paths.size()) < count; ++step)
    if (const std::string path = checkpoint_path(run, *step); read_checkpoint_info(path).is_scheduled) paths.push_back(path);
  if (paths.empty()) throw CheckpointError(run + " holds no checkpoints (folders named step_N)");
  std::reverse(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> best_checkpoints(const std::string& run, int64_t count, const std::string& score, bool lower_is_better) {
  const std::vector<RunCheckpoint> all = checkpoints_of(run);
  if (all.empty()) throw CheckpointError(run + " holds no checkpoints (folders named step_N)");
  std::vector<RunCheckpoint> scored;
  for (const RunCheckpoint& checkpoint : all)
    if (checkpoint.info.scores.count(score) > 0) scored.push_back(checkpoint);
  if (scored.empty()) throw CheckpointError("no checkpoint of " + run + " has the score " + score + "; scores there: " + known_scores(all));
  const double sign = lower_is_better ? -1 : 1;
  std::stable_sort(scored.begin(), scored.end(), [&](const RunCheckpoint& a, const RunCheckpoint& b) {
    return sign * a.info.scores.at(score) > sign * b.info.scores.at(score);
  });
  std::vector<std::string> paths;
  for (const RunCheckpoint& checkpoint : scored)
    if (static_cast<int64_t>(paths.size()) < count) paths.push_back(checkpoint.path);
  return paths;
}

}  // namespace lacuna

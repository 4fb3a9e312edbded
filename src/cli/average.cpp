#include "checkpoint/average.h"

#include <spdlog/fmt/fmt.h>

#include "base/durable_files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "train/training_state.h"

namespace lacuna {
namespace {

struct AverageOptions {
  std::string output;
  std::vector<std::string> inputs;
  int64_t last = 0, best = 0;
};

void declare(CLI::App& app, AverageOptions& options) {
  app.add_option("-o,--output", options.output, "Folder of the averaged checkpoint; an old one is replaced")->required();
  app.add_option("checkpoints", options.inputs, "A run folder with --last or --best, or the checkpoints themselves")->required();
  auto* last = app.add_option("--last", options.last,
                              "Average the last so many checkpoints that a run saved on schedule, not for an interruption or a validation")
                   ->check(whole_number_from(1))
                   ->default_str("");  // none
  app.add_option("--best", options.best, "Average the so many best checkpoints of a run, by its train.metric")
      ->check(whole_number_from(1))
      ->default_str("")
      ->excludes(last);
}

std::vector<std::string> chosen(const AverageOptions& options) {
  if (options.last == 0 && options.best == 0) {
    for (const std::string& input : options.inputs)
      if (!newest_checkpoint_of(input).empty())
        throw UsageError(input + " is a run, not a checkpoint; say which of its checkpoints: --last N or --best N");
    return options.inputs;
  }
  if (options.inputs.size() != 1) {
    throw UsageError(fmt::format("{} names a run's checkpoints, so it takes one run folder; there are {}: {}",
                                 options.last > 0 ? "--last" : "--best", options.inputs.size(), join(options.inputs)));
  }
  const std::string& run = options.inputs.front();
  if (options.last > 0) {
    std::vector<std::string> last = last_checkpoints(run, options.last);
    if (const std::string newest = newest_checkpoint_of(run); newest != last.back())
      log_info("{} is left out: it was saved for an interruption or a validation", newest);
    return last;
  }
  const std::string newest = newest_checkpoint_of(run);
  if (newest.empty()) throw CheckpointError(run + " holds no checkpoints (folders named step_N)");
  const ValidMetric metric = load_checkpoint(newest).options(newest).train.metric;
  return best_checkpoints(run, options.best, score_name(metric), lower_is_better(metric));
}

int run_average(const std::vector<std::string>& arguments) {
  CommandLine app("Averages the weights of checkpoints, which translates better than any one of them.", "lacuna average");
  AverageOptions options;
  declare(app, options);
  if (!app.read(arguments)) return 0;
  std::vector<std::string> paths;
  const CheckpointContents mean = read_while_replaced(options.inputs.front(), [&] {
    paths = chosen(options);
    std::vector<std::string> read = options.inputs;
    read.insert(read.end(), paths.begin(), paths.end());
    flags::require_new_or_checkpoint(options.output, read);
    return average_checkpoints(paths);
  });
  const int64_t wanted = std::max(options.last, options.best);
  if (static_cast<int64_t>(paths.size()) < wanted) log_warning("{} checkpoints were asked for, and the run has {}", wanted, paths.size());
  make_parent_of(options.output);
  save_checkpoint(options.output, mean);
  log_info("averaged {} into {}", join(paths), options.output);
  return 0;
}

}  // namespace

Verb average_verb() {
  return {"average", "average the weights of checkpoints", run_average};
}

}  // namespace lacuna

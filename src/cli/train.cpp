#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "base/interrupt.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "kernels/barrier_waits.h"
#include "ranks/gloo_group.h"
#include "ranks/place.h"
#include "ranks/stage.h"
#include "ranks/watch.h"
#include "run/joint_start.h"
#include "run/training_run.h"

namespace lacuna {
namespace {

/// Returns how long a start waits for the run folder: where several ranks served the run, the old rank 0 may still be ending; a file server
/// holds the lock of a dead machine for a while.
std::chrono::seconds patience_of(const RankPlace& place) {
  if (place.size == 1) return {};
  return std::chrono::seconds(place.restart > 0 ? 120 : 35);
}

/// Trains as one of the ranks of `group`, which is at `place`. Returns the exit code.
int serve(const CommandLine& app, const CommonFlags& flags, const RankPlace& place, Group& group, Watch& watch) {
  std::optional<Configuration> configuration = on_all_ranks(group, [&] { return flags.configuration(app); });
  if (!configuration) return 0;
  watch.set_timeout(std::chrono::seconds(configuration->options.train.rank_timeout));
  const std::string idle = share_threads(group, configuration->options.threads);
  if (!idle.empty() && group.is_first()) log_warning("{}", idle);
  handle_interrupts();
  if (!group.is_alone()) take_repeated_signals_as_one();
  const std::unique_ptr<Group> of_gpus = take_gpus(configuration->options, place, group);
  TrainingRun run(set_up_run(*configuration, of_gpus ? *of_gpus : group, patience_of(place)), watch);
  watch_barrier_waits();  // after the child process that trains a vocabulary
  return run.execute();
}

int run_train(const std::vector<std::string>& arguments) {
  CommandLine app("Trains a translation model from text. The same command again goes on where it stopped.", "lacuna train");
  CommonFlags flags;
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  if (!app.read(arguments)) return 0;
  const RankPlace place = place_from_environment();
  const bool only_prints = flags.dump_config || flags.help_options;
  if (only_prints && place.rank > 0) return 0;
  const std::unique_ptr<Group> group = only_prints ? std::make_unique<AloneGroup>() : join(place);
  speak_as_rank(*group);
  Watch watch(*group, {.before_end = [] { wait_for_saving(std::chrono::seconds(30)); }});
  try {
    return serve(app, flags, place, *group, watch);
  } catch (const LostRankError& error) {
    watch.end(error);
  } catch (...) {
    if (!has_ended_together()) watch.say_why_we_leave(Failure(std::current_exception()).text);
    throw;
  }
}

}  // namespace

Verb train_verb() {
  return {"train", "train a model from text; run it again to go on after any interruption", run_train};
}

}  // namespace lacuna

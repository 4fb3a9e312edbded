#include "base/interrupt.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "kernels/barrier_waits.h"
#include "run/training_run.h"

namespace lacuna {
namespace {

int run_train(const std::vector<std::string>& arguments) {
  CommandLine app("Trains a translation model from text. The same command again goes on where it stopped.", "lacuna train");
  CommonFlags flags;
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  if (!app.read(arguments)) return 0;
  const std::optional<Configuration> configuration = flags.configuration(app);
  if (!configuration) return 0;
  require_single_process();
  handle_interrupts();
  watch_barrier_waits();
  return TrainingRun(set_up_run(*configuration)).execute();
}

}  // namespace

Verb train_verb() {
  return {"train", "train a model from text; run it again to go on after any interruption", run_train};
}

}  // namespace lacuna

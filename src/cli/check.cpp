#include <iostream>

#include "base/interrupt.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "run/training_run.h"

namespace lacuna {
namespace {

int run_check(const std::vector<std::string>& arguments) {
  CommandLine app(
      "A dry run of a configuration: reads the data, trains some batches, translates a sentence, and writes nothing but data.cache, where "
      "it is set.",
      "lacuna check");
  CommonFlags flags;
  std::string update;
  flags.declare_configuration(app);
  app.add_option("--replay", update,
                 "Only repeat the update in this file, the bad_batch.json of a run that diverged, and say what is not finite");
  flags.declare_runtime(app);
  if (!app.read(arguments)) return 0;
  const std::optional<Configuration> configuration = flags.configuration(app);
  if (!configuration) return 0;
  require_single_process();
  handle_interrupts();
  if (update.empty())
    check_configuration(*configuration, std::cout);
  else
    replay_update(*configuration, update, std::cout);
  return 0;
}

}  // namespace

Verb check_verb() {
  return {"check", "a dry run of a configuration: data, memory, time, disk", run_check};
}

}  // namespace lacuna

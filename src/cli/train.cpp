#include <iostream>

#include "base/interrupt.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/training_run.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

int run(const std::vector<std::string>& arguments) {
  CLI::App app("Trains a translation model from text. The same command again goes on where it stopped.", "lacuna train");
  CommonFlags flags;
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  if (!parse_command_line(app, arguments)) return 0;
  if (flags.help_options) {
    std::cout << options_help();
    return 0;
  }
  flags.apply_log_level();
  const Options options = load_options(flags.sources(app));
  if (flags.dump_config) {
    std::cout << to_yaml(options);
    return 0;
  }
  require_device(options.device);
  use_threads(options.threads);
  handle_interrupts();
  return TrainingRun(options).execute();
}

}  // namespace

Verb train_verb() {
  return {"train", "train a model from text; run it again to go on after any interruption", run};
}

}  // namespace lacuna

#include "run/remarks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/interrupt.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

const char* signal_text(int signal) {
  if (signal == SIGHUP) return "SIGHUP (the terminal was closed)";
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace

std::string end_text(TrainingEnd end, const TrainingState& state, const TrainOptions& options) {
  switch (end) {
    case TrainingEnd::kDataOver:
      return fmt::format("step {}: the text that is read once (stream) has ended", state.step);
    case TrainingEnd::kMaxSteps:
      return fmt::format("{} of {} updates (train.max_steps)", state.step, options.max_steps);
    case TrainingEnd::kMaxEpochs:
      return fmt::format("{} of {} epochs (train.max_epochs)", state.position.epoch, options.max_epochs);
    case TrainingEnd::kMaxHours:
      return fmt::format("{:.4g} of {:.4g} hours (train.max_hours)", state.hours, options.max_hours);
    case TrainingEnd::kNoImprovement:
      return fmt::format("step {}: no better {} in {} since step {}, and train.patience is {} (a higher one goes on)", state.step,
                         score_name(options.metric), counted(state.scores.since_best, "validation"), state.scores.best_step,
                         options.patience.value_or(0));
    case TrainingEnd::kInterrupted:
      return fmt::format("step {}: interrupted by {}{}", state.step, signal_text(interrupt_signal()),
                         state.step > 0 ? ", and saved; the same command goes on from there" : "");
  }
  return "";
}

std::string warning_of_no_end(const TrainOptions& train) {
  if (train.max_steps > 0 || train.max_epochs > 0 || train.max_hours > 0 || train.patience.value_or(0) > 0) return "";
  return "none of train.max_steps, max_epochs, max_hours and patience is set: training goes on until it is stopped (Ctrl-C or SIGTERM)";
}

std::string warning_of_no_validation(const DataOptions& data) {
  if (!data.valid.empty()) return "";
  return "data.valid is empty: nothing is validated, so no checkpoint is the best one, and training does not stop early";
}

std::string warning_of_warmup(const TrainOptions& train, double updates_per_epoch, const TrainingState& start) {
  double end = std::numeric_limits<double>::infinity();
  if (train.max_steps > 0) end = static_cast<double>(train.max_steps);
  if (train.max_epochs > 0 && updates_per_epoch > 0) {
    const auto epochs = static_cast<double>(train.max_epochs - start.position.epoch);
    end = std::min(end, static_cast<double>(start.step) + epochs * updates_per_epoch);
  }
  const int64_t warmup = train.warmup_steps.value_or(0);
  if (start.step >= warmup || end >= static_cast<double>(warmup)) return "";
  return fmt::format("train.warmup_steps is {} and the run ends at about step {:.0f}: the learning rate never reaches its peak", warmup,
                     end);
}

}  // namespace lacuna

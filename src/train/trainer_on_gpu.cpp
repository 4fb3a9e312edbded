#include <ATen/ATen.h>

#include <utility>

#include "train/trainer.h"

// Updates that a GPU makes by itself (Optimizer::queue): the host reads what came of one after it has given the next one.
namespace lacuna {

/// Does update() where a GPU makes the update: this one is given to it before the outcome of the last one is read.
std::optional<bool> Trainer::queue_update() {
  OwnBatches own;
  std::vector<UnreadSums> sums;
  if (hooks_.is_interrupted()) return {};
  own = next_batches();
  if (own.batches.empty() && data_.is_over()) state_.data_is_over = true;  // there is nothing to do
  if (own.batches.empty() || data_.is_interrupted() || !accumulate_gradients(own, sums)) {
    optimizer_.clear_gradients();
    return {};
  }
  int64_t tokens = 0;
  bool has_auxiliary = false;
  std::vector<Tensor> losses;
  losses.reserve(sums.size());
  for (const UnreadSums& one : sums) {
    tokens += one.losses().tokens;
    has_auxiliary |= one.losses().has_auxiliary();
    losses.push_back(one.device_loss().to(at::kDouble));
  }
  const Tensor loss = losses.size() == 1 ? losses.front() : at::stack(losses).sum();
  const double lr = lr_of(state_.step + 1);
  QueuedUpdate queued = optimizer_.queue(lr, 1.0 / static_cast<double>(tokens), has_auxiliary, loss);
  state_.position = own.after;
  state_.data_is_over = own.ends_data;
  begin_step(tokens);
  settle();  // the update before
  unknown_.emplace(UnknownUpdate{std::move(queued), std::move(sums), last_batches_, state_.step, lr});
  hours_at_update_ = hours();
  return own.ends_epoch;
}

void Trainer::settle() {
  if (!unknown_) return;
  const UnknownUpdate update = std::exchange(unknown_, std::nullopt).value();
  const UpdateResult result = optimizer_.note(update.queued.read());
  UpdateReport report;
  report.batches.reserve(update.sums.size());
  for (const UnreadSums& one : update.sums) report.batches.push_back(one.read());
  const UpdateSums sums = sum_of({report});
  last_update_ = {.loss = result.is_finite ? sums.loss : 0, .tokens = sums.tokens, .lr = update.lr};
  try {
    count(sums, result, update.step);
  } catch (const DivergedError&) {  // what is then said of the last update is not of the one that was given since
    state_.step = update.step;
    last_batches_ = update.batches;
    throw;
  }
}

}  // namespace lacuna

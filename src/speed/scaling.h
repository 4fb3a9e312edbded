#pragma once

#include <cstdint>

namespace lacuna {

/// What an update costs a rank, measured on a few: enough to estimate more of them.
struct RankCosts {
  double compute_seconds = 0;   ///< of an update's batches and the optimizer, without others
  double parameters = 0;        ///< of the model
  double gradient_bytes = 4;    ///< of a gradient on the wire; a weight has 4
  double message_seconds = 0;   ///< of processor time for each message, sent and received
  double bytes_per_second = 0;  ///< of the network, in each direction
};

/// Returns the bytes that each of `ranks` sends in an update: (n - 1) / n of the gradients to their owners, and then of the weights.
double bytes_sent(const RankCosts& costs, int64_t ranks);

/// Returns an estimate of the share of their time in which ranks do what one of them would do alone, 0 to 1. The time of an update is that
/// of the slowest rank (times of ranks scatter by 2 %), and of the exchange: bytes over the network's rate, and messages. Behind the
/// backward pass, which takes 55 % of the time, gradients hide.
double estimated_efficiency(const RankCosts& costs, int64_t ranks);

}  // namespace lacuna

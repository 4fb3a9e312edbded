#pragma once

#include <array>
#include <cstdint>

namespace lacuna {

/// Chooses how many threads translate a sentence that is alone: all, or one. Threads that share a sentence wait for each other hundreds of
/// times: a large model is faster by them, but with a small one, or where others want the CPU of one of them, a single thread is. The
/// choice goes by the time that sentences took before.
class TeamChoice {
 public:
  explicit TeamChoice(int64_t threads) : sizes_{1, threads} {}

  /// Returns the number of threads for the next sentence: now and then the slower one, which may have become the faster.
  int64_t next();
  /// Takes in that so many threads took `seconds` for a sentence of so many tokens.
  void add(int64_t threads, int64_t tokens, double seconds);

 private:
  static constexpr int64_t kTrials = 16;         ///< sentences at the beginning, by both in turn
  static constexpr int64_t kSometimes = 400;     ///< sentences after which the slower one has a turn
  static constexpr double kShareOfLast = 0.125;  ///< of the last sentence in the mean

  std::array<int64_t, 2> sizes_;
  std::array<double, 2> seconds_per_token_ = {0, 0};  ///< means; 0 = nothing is known yet
  int64_t sentences_ = 0;
};

}  // namespace lacuna

#include "search/team_choice.h"

namespace lacuna {

int64_t TeamChoice::next() {
  const int64_t number = sentences_++;
  const size_t faster = seconds_per_token_[0] <= seconds_per_token_[1] ? 0 : 1;
  if (number < kTrials) return sizes_[static_cast<size_t>(number % 2)];
  return sizes_[number % kSometimes == 0 ? 1 - faster : faster];
}

void TeamChoice::add(int64_t threads, int64_t tokens, double seconds) {
  double& mean = seconds_per_token_[threads == sizes_[0] ? 0 : 1];
  const double last = seconds / static_cast<double>(tokens);
  mean = mean == 0 ? last : mean + kShareOfLast * (last - mean);
}

}  // namespace lacuna

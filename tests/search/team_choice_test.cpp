#include "search/team_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lacuna {
namespace {

constexpr int64_t kThreads = 4;

/// Lets sentences of ten tokens be translated that take so many seconds with one thread and with all; returns how often all were chosen.
int64_t chosen_team(TeamChoice& choice, int64_t sentences, double with_one, double with_all) {
  int64_t all = 0;
  for (int64_t i = 0; i < sentences; ++i) {
    const int64_t threads = choice.next();
    EXPECT_TRUE(threads == 1 || threads == kThreads);
    choice.add(threads, 10, threads == 1 ? with_one : with_all);
    all += threads == kThreads ? 1 : 0;
  }
  return all;
}

TEST(TeamChoice, TriesBothAndTakesTheFaster) {
  TeamChoice small(kThreads), large(kThreads);
  EXPECT_EQ(chosen_team(small, 16, 0.005, 0.02), 8);
  EXPECT_EQ(chosen_team(small, 300, 0.005, 0.02), 0);
  EXPECT_EQ(chosen_team(large, 16, 0.05, 0.02), 8);
  EXPECT_EQ(chosen_team(large, 300, 0.05, 0.02), 300);
}

TEST(TeamChoice, ChangesWhenTheFasterBecomesTheSlower) {
  TeamChoice choice(kThreads);
  chosen_team(choice, 100, 0.02, 0.01);
  EXPECT_LT(chosen_team(choice, 100, 0.02, 0.05), 20);
}

TEST(TeamChoice, FindsOutThatTheSlowerHasBecomeTheFaster) {
  TeamChoice choice(kThreads);
  chosen_team(choice, 100, 0.02, 0.05);
  EXPECT_GT(chosen_team(choice, 20'000, 0.02, 0.001), 10'000);
}

TEST(TeamChoice, GoesByTheTimeOfAToken) {
  TeamChoice choice(kThreads);
  for (int i = 0; i < 100; ++i) {
    const int64_t threads = choice.next();
    threads == 1 ? choice.add(1, 10, 0.01) : choice.add(kThreads, 100, 0.05);
  }
  EXPECT_EQ(choice.next(), kThreads);
}

}  // namespace
}  // namespace lacuna

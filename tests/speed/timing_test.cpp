#include "speed/timing.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <thread>

namespace lacuna {
namespace {

using testing::Each;
using testing::Ge;

constexpr double kLongEnough = 0.025;  // for a clock to tell: run once a measurement

/// Writes down that it ran, and takes its time.
std::function<void()> slow(std::string& runs, char name) {
  return [&runs, name] {
    runs += name;
    std::this_thread::sleep_for(std::chrono::duration<double>(kLongEnough));
  };
}

TEST(TimeInTurn, MeasuresEachInEveryRoundAfterRunsThatDoNotCount) {
  std::string runs;
  std::vector<Timed> both = {{slow(runs, 'a')}, {slow(runs, 'b')}};
  time_in_turn(both, 3);
  EXPECT_EQ(runs, "aabbababab");
  for (const Timed& timed : both) {
    EXPECT_EQ(timed.seconds.size(), 3u);
    EXPECT_THAT(timed.seconds, Each(Ge(kLongEnough)));
    EXPECT_GE(timed.median_ms(), 1e3 * kLongEnough);
  }
}

TEST(TimeInTurn, RepeatsWhatAClockCannotTellAndGivesTheTimeOfOne) {
  int64_t runs = 0;
  std::vector<Timed> quick = {{[&] { ++runs; }}};
  time_in_turn(quick, 2);
  EXPECT_GT(runs, 2 + 2 * 10);
  EXPECT_LE(runs, 2 + 2 * 200);
  EXPECT_EQ(quick[0].seconds.size(), 2u);
}

TEST(TimeInTurn, RunsWhatTakesLongOnceBeforeItsMeasurements) {
  int64_t runs = 0;
  std::vector<Timed> slow_one = {{[&] {
    if (++runs == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  }}};
  time_in_turn(slow_one, 2);
  EXPECT_EQ(runs, 1 + 2);
}

TEST(Laps, GiveTheSecondsOfEach) {
  Laps laps(c10::kCPU);
  EXPECT_TRUE(laps.seconds().empty());
  std::string runs;
  slow(runs, 'a')();
  laps.end();
  laps.end();
  const std::vector<double> seconds = laps.seconds();
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_GE(seconds[0], kLongEnough);
  EXPECT_GE(seconds[1], 0);
}

TEST(PairedSeconds, TakesSoftmaxFirst) {
  std::string runs;
  PairedSeconds seconds;
  for (int pair = 0; pair < 2; ++pair) seconds.measure(slow(runs, 's'), [&] { runs += 'o'; });
  EXPECT_EQ(runs, "soso");
  EXPECT_THAT(seconds.softmax, Each(Ge(kLongEnough)));
  EXPECT_EQ(seconds.other.size(), 2u);
}

}  // namespace
}  // namespace lacuna

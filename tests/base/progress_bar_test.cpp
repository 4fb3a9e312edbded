#include "base/progress_bar.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(ProgressLine, HasABarOfThirtyCharactersWhereThereIsRoom) {
  EXPECT_EQ(progress_line(0.5, "step 1/2", 79), "[###############...............] step 1/2");
}

TEST(ProgressLine, FitsANarrowTerminal) {
  const std::string text(40, 'x');
  EXPECT_EQ(progress_line(0.5, text, 59), "[########........] " + text);
  EXPECT_EQ(progress_line(0.5, text, 53), "[#####.....] " + text);
  EXPECT_EQ(progress_line(0.5, text, 52), text);
  EXPECT_EQ(progress_line(0.5, text, 20), std::string(20, 'x'));
  EXPECT_EQ(progress_line(0.5, text, 0), "");
}

TEST(ProgressLine, LosesItsLastPartsWhereTheyDoNotFit) {
  EXPECT_EQ(progress_line(0.5, "step 1/40, loss 8.7, lr 1e-3", 27), "step 1/40, loss 8.7");
  EXPECT_EQ(progress_line(0.5, "step 1/40, loss 8.7, lr 1e-3", 18), "step 1/40");
  EXPECT_EQ(progress_line(0.5, "step 1/40, loss 8.7, lr 1e-3", 4), "step");
}

TEST(ProgressLine, HasNoBarWhereTheShareIsUnknown) {
  EXPECT_EQ(progress_line(0, "step 1", 79), "step 1");
}

TEST(ProgressLine, StaysWithinTheBarWhenMoreIsDoneThanExpected) {
  EXPECT_EQ(progress_line(1.5, "", 33), "[##############################] ");
}

}  // namespace
}  // namespace lacuna

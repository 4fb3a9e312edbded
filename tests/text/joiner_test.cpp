#include "text/joiner.h"

#include <gmock/gmock.h>

namespace lacuna {
namespace {

using ::testing::ElementsAre;

/// Reference: `sed -r 's/(@@ )|(@@ ?$)//g'`, the command in subword-nmt's manual.
TEST(Joiner, JoinsThePiecesOfAWord) {
  EXPECT_EQ(joined("viel@@ leicht geht es", "@@"), "vielleicht geht es");
  EXPECT_EQ(joined("a@@ b@@ c d", "@@"), "abc d");
  EXPECT_EQ(joined("@@ b", "@@"), "b");
  EXPECT_EQ(joined("a b@@", "@@"), "a b");
  EXPECT_EQ(joined("", "@@"), "");
}

TEST(Joiner, IsNoneWithinAWord) {
  EXPECT_EQ(joined("x@@y a@ b", "@@"), "x@@y a@ b");
}

TEST(Joiner, ThatIsEmptyChangesNothing) {
  for (const char* text : {"a@@ b", " a  b ", "", " "}) EXPECT_EQ(joined(text, ""), text);
}

TEST(Joiner, LeavesSpacesBetweenWords) {
  EXPECT_EQ(joined(" a  b@@ c ", "@@"), " a  bc ");
}

TEST(Joiner, MayBeOfOtherCharacters) {
  EXPECT_EQ(joined("viel\uFFED leicht", "\uFFED"), "vielleicht");
}

TEST(Joiner, NumbersWords) {
  EXPECT_THAT(joined_words("viel@@ leicht geht es", "@@"), ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(joined_words("a  b@@", "@@"), ElementsAre(0, 1, 2));
  EXPECT_THAT(joined_words("a@@ b", ""), ElementsAre(0, 1, 2));
  EXPECT_THAT(joined_words("a@@  b c", "@@"), ElementsAre(0, 1, 2, 3));  // as many as joined() gives
  EXPECT_THAT(joined_words("a@@ ", "@@"), ElementsAre(0, 1));
  EXPECT_THAT(joined_words("", "@@"), ElementsAre(0));
}

}  // namespace
}  // namespace lacuna

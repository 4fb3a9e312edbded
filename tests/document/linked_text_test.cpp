#include "document/linked_text.h"

#include <gmock/gmock.h>

namespace lacuna::document {
namespace {

TEST(LinkedTextJoiner, CountsWordsOfTheWholeText) {
  LinkedTextJoiner joiner;
  joiner.add_common("  ");
  joiner.add("a b", {"x y z", {{0, 2}, {1, 0}}});
  joiner.add_common("\n");
  joiner.add("c", {"w", {{0, 0}}});
  const LinkedText joined = std::move(joiner).joined();
  EXPECT_EQ(joined.text, "  x y z\nw");
  EXPECT_EQ(joined.links, (Links{{0, 2}, {1, 0}, {2, 3}}));
}

TEST(LinkedTextJoiner, CountsAWordThatGoesOnOnce) {
  LinkedTextJoiner joiner;
  joiner.add("甲。", {"A.", {{0, 0}}});
  joiner.add_target(" ");
  joiner.add("乙 丙", {"B C", {{0, 0}, {1, 1}}});
  EXPECT_EQ(std::move(joiner).joined().links, (Links{{0, 0}, {0, 1}, {1, 2}}));
}

}  // namespace
}  // namespace lacuna::document

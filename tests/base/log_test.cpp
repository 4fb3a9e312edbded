#include "base/log.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "a b\tc\n", "Größe 温度 🙂", "\u00a0"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f\r", 5)), "a\\x00b\\x7f\\x0d");
  EXPECT_EQ(printable("\u009b31m"), "\\xc2\\x9b31m");
}

TEST(Printable, ShowsBytesThatAreNotText) {
  EXPECT_EQ(printable("Gr\xfc\xdf"), "Gr\\xfc\\xdf");
  EXPECT_EQ(printable("\x9b\xe2\x82"), "\\x9b\\xe2\\x82");
}

}  // namespace
}  // namespace lacuna

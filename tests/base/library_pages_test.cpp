#include "base/library_pages.h"

#include <gtest/gtest.h>

#include "base/resources.h"

namespace lacuna {
namespace {

/// KiB of files that are in this process's memory.
uint64_t kib_of_files() {
  return number_in_file("/proc/self/status", "RssFile:").value();
}

TEST(LibraryPages, AreGivenBackAndReadAgain) {
  const uint64_t before = kib_of_files();
  give_back_library_pages();
  EXPECT_LT(kib_of_files(), before);
  give_back_library_pages();
  EXPECT_GT(kib_of_files(), 0u);
}

}  // namespace
}  // namespace lacuna

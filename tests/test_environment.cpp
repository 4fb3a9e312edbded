#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/parallel.h"

// Compiled into every test program that uses LibTorch.
namespace {

class SettledFunctions : public testing::Environment {
  void SetUp() override { lacuna::settle_vector_functions(); }
};
const testing::Environment* const kSettled = testing::AddGlobalTestEnvironment(new SettledFunctions);

/// Ends the program with an error if the filter selects no test: a misspelled name must not read as PASSED.
class NoEmptySelection : public testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest& tests) override {
    if (tests.test_to_run_count() > 0 || std::getenv("GTEST_TOTAL_SHARDS") != nullptr) return;
    std::fprintf(stderr, "no test matches the filter \"%s\"; --gtest_list_tests lists all\n", testing::GTEST_FLAG(filter).c_str());
    std::exit(1);
  }
};
const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new NoEmptySelection);
  return true;
}();

}  // namespace

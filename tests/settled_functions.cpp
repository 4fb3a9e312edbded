#include <gtest/gtest.h>

#include "kernels/vector_functions.h"

namespace {

/// Compiled into every test program that uses LibTorch.
class SettledFunctions : public testing::Environment {
  void SetUp() override { lacuna::settle_vector_functions(); }
};
const testing::Environment* const kSettled = testing::AddGlobalTestEnvironment(new SettledFunctions);

}  // namespace

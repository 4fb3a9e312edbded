#include "model/precision.h"

#include <gtest/gtest.h>

#include "kernels/cpu_target.h"

namespace lacuna {
namespace {

const at::Device kCpu("cpu"), kGpu("cuda:1");

Precision best_of_cpu() {
  return bf16_is_faster() ? Precision::kBf16 : Precision::kFp32;
}

TEST(TrainingPrecision, IsBf16OnAGpuUnlessSaidOtherwise) {
  EXPECT_EQ(training_precision(Precision::kAuto, at::Device("cuda")), Precision::kBf16);
  EXPECT_EQ(training_precision(Precision::kAuto, kGpu), Precision::kBf16);
  EXPECT_EQ(training_precision(Precision::kFp32, kGpu), Precision::kFp32);
  EXPECT_EQ(training_precision(Precision::kAuto, kCpu), best_of_cpu());
}

TEST(FactorPrecision, IsBf16x3WithTilesOnly) {
  EXPECT_EQ(factor_precision(Precision::kBf16x3, kGpu), Precision::kFp32);
  EXPECT_EQ(factor_precision(Precision::kBf16x3, kCpu), cpu_has(CpuTarget::kAmx) ? Precision::kBf16x3 : Precision::kFp32);
  EXPECT_EQ(factor_precision(Precision::kBf16, kCpu), Precision::kBf16);
  EXPECT_EQ(factor_precision(Precision::kAuto, kGpu), Precision::kBf16);
}

TEST(TranslatingPrecision, IsFp32OnAGpuUnlessBf16IsWanted) {
  EXPECT_EQ(translating_precision(Precision::kBf16, kGpu), Precision::kBf16);
  EXPECT_EQ(translating_precision(Precision::kInt8, kGpu), Precision::kFp32);
  EXPECT_EQ(translating_precision(Precision::kAuto, kGpu), Precision::kFp32);
  EXPECT_EQ(translating_precision(Precision::kInt8, kCpu), Precision::kInt8);
  EXPECT_EQ(translating_precision(Precision::kAuto, kCpu), best_of_cpu());
}

}  // namespace
}  // namespace lacuna

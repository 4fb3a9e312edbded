#include "kernels/cpu_target.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

// The compilers' own test reads the same bits; Clang's knows fewer names.
TEST(CpuHas, WhatTheCompilerSees) {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  EXPECT_TRUE(cpu_has(CpuTarget::kAvx2));
  EXPECT_EQ(cpu_has(CpuTarget::kAvx512), avx512);
  EXPECT_EQ(cpu_has(CpuTarget::kAvx512Vnni), avx512 && __builtin_cpu_supports("avx512vnni"));
  EXPECT_EQ(cpu_has(CpuTarget::kAvx512Bf16), cpu_has(CpuTarget::kAvx512Vnni) && __builtin_cpu_supports("avx512bf16"));
#ifndef __clang__
  EXPECT_EQ(cpu_has(CpuTarget::kAvxVnni), __builtin_cpu_supports("avxvnni") != 0);
  const bool amx = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("amx-int8");
  EXPECT_TRUE(!cpu_has(CpuTarget::kAmx) || (amx && cpu_has(CpuTarget::kAvx512Bf16))) << "Linux may refuse its use";
#endif
}

TEST(Bf16IsFaster, NeedsInstructionsAndFollowsFromTiles) {
  EXPECT_TRUE(!bf16_is_faster() || cpu_has(CpuTarget::kAvx512Bf16));
  EXPECT_TRUE(!cpu_has(CpuTarget::kAmx) || bf16_is_faster());
#ifndef __clang__
  const bool is_intel = __builtin_cpu_is("intel") != 0;
  EXPECT_EQ(bf16_is_faster(), cpu_has(CpuTarget::kAmx) || (cpu_has(CpuTarget::kAvx512Bf16) && !is_intel));
#endif
}

TEST(CpuTarget, IsFoundByItsName) {
  EXPECT_EQ(cpu_target("avx2"), CpuTarget::kAvx2);
  EXPECT_EQ(cpu_target("amx"), CpuTarget::kAmx);
  EXPECT_STREQ(name_of(CpuTarget::kAvx512Vnni), "avx512_vnni");
}

}  // namespace
}  // namespace lacuna

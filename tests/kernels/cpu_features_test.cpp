#include "kernels/cpu_features.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

// The compilers' own test is another reader of the same bits; Clang's knows fewer names.
TEST(CpuFeatures, AreThoseThatTheCompilerSees) {
  const CpuFeatures& cpu = cpu_features();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  EXPECT_EQ(cpu.avx512, avx512);
  EXPECT_EQ(cpu.avx512_vnni, avx512 && __builtin_cpu_supports("avx512vnni"));
  EXPECT_EQ(cpu.avx512_bf16, cpu.avx512_vnni && __builtin_cpu_supports("avx512bf16"));
#ifndef __clang__
  EXPECT_EQ(cpu.avx_vnni, __builtin_cpu_supports("avxvnni") != 0);
  EXPECT_EQ(cpu.amx, cpu.avx512_bf16 && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
                         __builtin_cpu_supports("amx-int8"));
#endif
}

}  // namespace
}  // namespace lacuna

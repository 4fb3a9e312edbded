#pragma once

namespace lacuna {

/// Instruction sets beyond AVX2 that kernels are compiled for: true where the processor has them and the operating system keeps their
/// registers. Each of avx512's includes those above it.
struct CpuFeatures {
  bool avx_vnni;
  bool avx512;  ///< F, BW, CD, DQ and VL: what every server since Skylake has
  bool avx512_vnni;
  bool avx512_bf16;
  bool amx;  ///< tiles of bf16 and of bytes; a process must ask Linux for permission before it uses them
};

/// The features of this machine.
const CpuFeatures& cpu_features();

}  // namespace lacuna

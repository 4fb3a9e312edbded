#pragma once

/// Marks a function that CUDA code may call too: nvcc compiles it for the host and for GPUs; other compilers see nothing.
#ifdef __CUDACC__
#define LACUNA_HOST_DEVICE __host__ __device__
#else
#define LACUNA_HOST_DEVICE
#endif

/// Stands before a loop over registers of a GPU, which have no addresses: the compiler must know each index.
#ifdef __CUDACC__
#define LACUNA_UNROLL _Pragma("unroll")
#else
#define LACUNA_UNROLL
#endif

/// Stands before a loop over plain pointers: what it writes overlaps with nothing else it touches, so it can be vectorized.
#ifdef __clang__
#define LACUNA_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LACUNA_NO_OVERLAP _Pragma("GCC ivdep")
#endif

#pragma once

/// Marks a function that CUDA code may call too. nvcc compiles it for the host and for GPUs; other compilers see nothing.
#ifdef __CUDACC__
#define LACUNA_HOST_DEVICE __host__ __device__
#else
#define LACUNA_HOST_DEVICE
#endif

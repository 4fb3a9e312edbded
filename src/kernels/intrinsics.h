#pragma once

// The processor's instructions as functions. The warnings that stay off in what includes this are of GCC 12 about its
// own of AVX-512 (its bug 105593).

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

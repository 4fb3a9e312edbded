#pragma once

/// Before a loop over plain pointers: what it writes overlaps with nothing else that it touches, so it can be vectorised.
#ifdef __clang__
#define LACUNA_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LACUNA_NO_OVERLAP _Pragma("GCC ivdep")
#endif

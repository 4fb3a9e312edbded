// jemalloc stands in for malloc; this is how it is told what to do. MALLOC_CONF of the environment goes before.
#include <jemalloc/jemalloc.h>

/// Freed memory is kept for what is allocated next instead of going back to the system, and taken in huge pages where there are any:
/// updates allocate the same again and again. One arena, of large tensors too, and any freed range in it may be split: few threads
/// allocate, and what one frees serves another, whatever its size.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the library's name for it, and its type
const char* malloc_conf = "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,narenas:1,oversize_threshold:0,lg_extent_max_active_fit:20";

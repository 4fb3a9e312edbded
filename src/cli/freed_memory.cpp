#include "cli/freed_memory.h"

#include <mimalloc.h>

namespace lacuna {

// Seen, small model, an update of 2,000 target tokens: 24,000 page faults fewer, and a tenth to a fifth of its time.
void keep_freed_memory() {
#if MI_MALLOC_VERSION >= 210
  mi_option_set_default(mi_option_purge_delay, -1);
#else
  mi_option_set_enabled_default(mi_option_allow_decommit, false);
#endif
  mi_option_set_enabled_default(mi_option_large_os_pages, true);
}

}  // namespace lacuna

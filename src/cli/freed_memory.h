#pragma once

namespace lacuna {

/// Keeps freed memory for what is allocated next instead of giving it back to the system, and takes it in huge pages where there are any:
/// updates allocate the same again and again. To be called before anything large is allocated. MIMALLOC_* of the environment go before.
void keep_freed_memory();

}  // namespace lacuna

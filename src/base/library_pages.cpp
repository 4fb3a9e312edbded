#include "base/library_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>

namespace lacuna {
namespace {

/// Returns the memory at an address, which the loader gives as a number.
void* memory_at(ElfW(Addr) address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): it is one
}

/// Returns true if code or constants were changed when the library was loaded, and are not as in its file.
bool is_changed_by_loading(const dl_phdr_info& library, std::span<const ElfW(Phdr)> segments) {
  for (const auto& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (const auto* entry = static_cast<const ElfW(Dyn)*>(memory_at(library.dlpi_addr + segment.p_vaddr)); entry->d_tag != DT_NULL;
         ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0)) return true;
  }
  return false;
}

int give_back_library(dl_phdr_info* library, size_t /*size*/, void* /*data*/) {
  const std::span<const ElfW(Phdr)> segments(library->dlpi_phdr, library->dlpi_phnum);
  if (is_changed_by_loading(*library, segments)) return 0;
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const ElfW(Addr) first = library->dlpi_addr + segment.p_vaddr, begin = first / page * page;
    madvise(memory_at(begin), first + segment.p_memsz - begin, MADV_DONTNEED);  // fails for the system's own library (vdso)
  }
  return 0;
}

}  // namespace

void give_back_library_pages() {
  dl_iterate_phdr(give_back_library, nullptr);
}

}  // namespace lacuna

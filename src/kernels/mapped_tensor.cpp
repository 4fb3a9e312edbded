#include "kernels/mapped_tensor.h"

#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace lacuna {
namespace {

using Map = std::shared_ptr<const void>;

/// The deleter of such tensors, by which they are recognized.
void delete_map(void* map) {
  delete static_cast<Map*>(map);
}

/// Reads the kernel's entry of each page from page `first` on (Linux, Documentation/admin-guide/mm/pagemap.rst); empty
/// where it has none.
std::vector<uint64_t> page_states(uintptr_t first, size_t count) {
  std::vector<uint64_t> states(count);
  const int descriptor = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const size_t bytes = count * sizeof(uint64_t);
  const ssize_t read = pread(descriptor, states.data(), bytes, static_cast<off_t>(first * sizeof(uint64_t)));
  close(descriptor);
  return read == static_cast<ssize_t>(bytes) ? states : std::vector<uint64_t>();
}

/// Returns whether a page is in memory and is the file's own: one that was written to is a copy.
bool is_of_file(uint64_t page_state) {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kOfFile = uint64_t{1} << 61;
  return (page_state & kPresent) != 0 && (page_state & kOfFile) != 0;
}

}  // namespace

Tensor mapped_tensor(void* data, at::IntArrayRef sizes, at::ScalarType dtype, Map map) {
  return at::for_blob(data, sizes).context(new Map(std::move(map)), delete_map).options(at::TensorOptions(dtype)).make_tensor();
}

void give_back_pages(const Tensor& tensor) {
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get_deleter() != delete_map) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), data = reinterpret_cast<uintptr_t>(memory.get());
  const uintptr_t first = (data + page - 1) / page, end = (data + tensor.storage().nbytes()) / page;  // pages that no other tensor shares
  if (first >= end) return;
  char* const begin = static_cast<char*>(memory.get()) + (first * page - data);
  const std::vector<uint64_t> states = page_states(first, end - first);
  for (size_t i = 0, run = 0; i < states.size(); i = run + 1) {
    for (run = i; run < states.size() && is_of_file(states[run]);) ++run;
    if (run > i) madvise(begin + i * page, (run - i) * page, MADV_DONTNEED);
  }
}

}  // namespace lacuna

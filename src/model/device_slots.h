#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attention/gpu/one_query_run.h"

namespace lacuna {

/// What a step of N hypotheses reads on a GPU.
struct DeviceStep {
  Tensor tokens;     ///< [N] int64 the newest
  Tensor positions;  ///< [N] int32 theirs
  Tensor num_keys;   ///< [N] int32 slots of each hypothesis
  Tensor slots;      ///< [N, S] int32: hypothesis i names slots[i, 0] to slots[i, num_keys[i] - 1], the newest last
  int64_t most_keys = 0;
  Tensor first_of_memory, num_memory;  ///< [N] int32: the rows of the source's keys that each sees, from the first on
  int64_t most_memory = 0;
};

/// The slots of a SlotCache's hypotheses on a GPU: a table of which a kernel makes the next one, from the rows that the search continues.
/// A step takes one copy to the GPU.
class DeviceSlots {
 public:
  explicit DeviceSlots(at::Device device) : device_(device) {}

  /// SlotCache::select() and, with hypotheses that are added, join().
  void select(const std::vector<int32_t>& parents);
  void add(int64_t hypotheses);

  /// What append() takes, [N] each.
  struct Appended {
    const std::vector<int32_t>& tokens;
    const std::vector<int32_t>& positions;
    const std::vector<int64_t>& slots;  ///< the new ones
    const std::vector<int32_t>& first_of_memory;
    const std::vector<int32_t>& num_memory;
  };
  /// Appends a slot to every hypothesis; returns what the step reads, until the next call.
  const DeviceStep& append(const Appended& appended);
  /// Returns the patterns of a type for at least the positions of the last step; null if each query sees all keys. The type must stay.
  const cuda::PatternTable* patterns(const AttentionType& type, int64_t num_heads);

 private:
  struct Table {
    Tensor slots;   // [hypotheses, positions] int32, room for more of both
    Tensor counts;  // [hypotheses] int32
  };

  at::Device device_;
  std::vector<int32_t> parents_;  // of each hypothesis: its row of table_; -1 = none
  Table table_, other_;           // of the last step, and memory for the next
  DeviceStep step_;
  std::map<const AttentionType*, cuda::PatternTable> patterns_;
};

/// Returns true if there are kernels for steps of a decoder on tensors of this kind (a GPU's, or those that tests emulate).
bool has_device_slots(const Tensor& like);

}  // namespace lacuna

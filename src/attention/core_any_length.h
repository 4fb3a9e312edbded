#pragma once

#include "attention/core_cpu.h"

namespace lacuna::core {

/// The core for sentences of any length: where keys and values do not fit the cache, more rows at a time pass over them.
template <class M>
class AnyLengthCore {
 public:
  using S = typename M::scalar;

  static void forward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    is_long(task) ? Long::forward(call, task, workspace) : Short::forward(call, task, workspace);
  }
  static void backward(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace) {
    is_long(task) ? Long::backward(call, task, workspace) : Short::backward(call, task, workspace);
  }
  static int64_t memory_elements(int64_t row, int64_t d_head) {
    return row < kManyKeys ? Short::memory_elements(row, d_head) : Long::memory_elements(row, d_head);
  }

 private:
  using Short = Core<M>;
  using Long = Core<M, DirectProducts<M, 64>>;
  static constexpr int kManyKeys = 1024, kManyQueries = 64;

  static bool is_long(const Task<S>& task) { return task.keys >= kManyKeys && task.queries >= kManyQueries; }
};

}  // namespace lacuna::core

#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "attention/cpu/core.h"
#include "attention/cpu/part_memory.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"

/// What core_run.cpp holds for each thread.
namespace lacuna {

/// Memory that grows on demand; its content is undefined.
template <class S>
class Buffer {
 public:
  S* of(int64_t size) {
    if (size > size_) memory_.reset(new S[static_cast<size_t>(size_ = size)]);
    return memory_.get();
  }

 private:
  int64_t size_ = 0;
  std::unique_ptr<S[]> memory_;
};

/// The rows of one sentence and head in type S, where the tensors are bf16 and the products do not read bf16.
template <class S>
struct Copies {
  Buffer<S> q, k, v, context, q_gradient, k_gradient, v_gradient;
};

/// The memory of a thread beside the tensors: made once for a chunk of tasks, of which at most `at_once` run together.
template <class S>
struct Thread {
  Thread(const core::Functions<S>& functions, int64_t max_keys, int64_t max_queries, int64_t d_head, bool has_mask, int64_t at_once) {
    const int64_t row = core::row_elements(max_keys), rows = core::tile_rows(max_queries);
    workspace.row = row;
    workspace.rows = rows;
    workspace.memory = take(at_once * functions.memory_elements(row, rows, d_head), memory);
    if (has_mask) workspace.mask_memory = take(functions.mask_memory_elements(row, rows, d_head), mask_memory);
    integers.reset(new int32_t[static_cast<size_t>((rows + 2) * row)]);
    workspace.rows_of = {integers.get(), integers.get() + row};
    workspace.index = integers.get() + 2 * row;
    workspace.ahead = &ahead;
  }
  /// Allocates `elements` into `memory`; the result is aligned to a cache line.
  static S* take(int64_t elements, std::unique_ptr<S[]>& memory) {
    constexpr size_t kLine = 64;
    size_t bytes = static_cast<size_t>(elements) * sizeof(S) + kLine;
    memory.reset(new S[bytes / sizeof(S)]);
    void* begin = memory.get();
    return static_cast<S*>(std::align(kLine, bytes - kLine, begin, bytes));
  }
  /// True if each query sees at most one run of keys that lie side by side: nothing is won by gathering them.
  bool sees_runs() const {
    for (size_t i = 0; i + 1 < first_segment.size(); ++i) {
      const auto first = static_cast<size_t>(first_segment[i]), end = static_cast<size_t>(first_segment[i + 1]);
      if (!is_one_run(std::span(segments).subspan(first, end - first))) return false;
    }
    return true;
  }
  std::unique_ptr<S[]> memory, mask_memory;  // what is in it does not matter; the latter of types with a mask
  std::unique_ptr<int32_t[]> integers;
  core::Workspace<S> workspace = {};
  core::RowsAhead ahead;
  std::vector<core::Task<S>> tasks;  // that go together

  std::vector<int32_t> reach;                  // of each query of one sentence and head; empty = no limit
  std::vector<KeySegment> segments, of_query;  // of all these queries
  std::vector<int32_t> first_segment;
  std::vector<AttentionPart> parts;           // or, if not empty, these
  bool has_runs = false;                      // each query sees one run of keys at most
  int64_t sentence = -1;                      // that segments and parts are for
  const AttentionPattern* pattern = nullptr;  // likewise
  AttentionDropout dropout;
  PartMemory<S> part_memory;
  Copies<S> copies;
  core::StoredTask stored = {};
};

}  // namespace lacuna

#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "attention/cpu/parts.h"
#include "attention/cpu/task.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"

/// The memory that a thread of run.cpp works in, beside the tensors.
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

/// The keys of one part of a sentence at a time, gathered so that the core works on them as on a short sentence.
template <class S>
class GatheredPart {
 public:
  /// Returns the part of a sentence's task, each query_step-th query over the gathered keys. Valid until the next call.
  core::Task<S> task(const core::Task<S>& sentence, const AttentionPart& part, int d_head) {
    core::Task<S> task = sentence;
    task.queries = part.num_queries;
    task.keys = static_cast<int>(part.keys.size());
    task.first_position += part.first_query;
    task.position_step = part.query_step;
    task.positions = part.keys.data();
    task.segments = part.segments.data();
    task.first_segment = part.first_segment.data();
    take_queries(part, task);
    task.k = gathered(part, sentence.k, d_head, k_);
    task.v = gathered(part, sentence.v, d_head, v_);
    if (!sentence.is_backward) return task;
    task.k_gradient = zeros(part, d_head, k_gradient_);
    task.v_gradient = zeros(part, d_head, v_gradient_);
    return task;
  }

  /// Adds the gradients of the part's keys and values, after a backward pass on the task, to the sentence's.
  void add_gradients(const core::Task<S>& sentence, const AttentionPart& part, int d_head) const {
    scatter(part, k_gradient_, d_head, sentence.k_gradient);
    scatter(part, v_gradient_, d_head, sentence.v_gradient);
  }

 private:
  /// Makes all rows of queries start at the part's first and step from one of its queries to the next.
  static void take_queries(const AttentionPart& part, core::Task<S>& task) {
    const auto take = [&](auto& rows) {
      if (rows.data == nullptr) return;
      rows = rows.from(part.first_query);
      rows.stride *= part.query_step;
    };
    take(task.q);
    take(task.context);
    take(task.context_gradient);
    take(task.q_gradient);
    take(task.numbers);
    take(task.number_gradients);
    take(task.kept_number);
    task.kept_rows = {};
  }

  static core::Rows<const S> gathered(const AttentionPart& part, const core::Rows<const S>& rows, int d_head, std::vector<S>& to) {
    to.resize(part.keys.size() * static_cast<size_t>(d_head));
    S* next = to.data();
    for (const int32_t key : part.keys) next = std::copy_n(rows.row(key), d_head, next);
    return {to.data(), d_head};
  }
  static core::Rows<S> zeros(const AttentionPart& part, int d_head, std::vector<S>& memory) {
    memory.assign(part.keys.size() * static_cast<size_t>(d_head), 0);
    return {memory.data(), d_head};
  }
  static void scatter(const AttentionPart& part, const std::vector<S>& from, int d_head, const core::Rows<S>& to) {
    const S* next = from.data();
    for (const int32_t key : part.keys)
      for (int c = 0; c < d_head; ++c) to.row(key)[c] += *next++;
  }

  std::vector<S> k_, v_, k_gradient_, v_gradient_;  // [keys, d_head]
};

/// The memory of a thread, made once for a chunk of tasks, of which at most `at_once` run together.
template <class S>
struct ThreadMemory {
  ThreadMemory(const core::EntryPoints<S>& core, int64_t max_keys, int64_t max_queries, int64_t d_head, int64_t at_once) {
    const int64_t row = core::row_elements(max_keys), rows = core::tile_rows(max_queries);
    const auto elements = static_cast<size_t>(at_once * core.memory_elements(row, rows, d_head));
    memory.reset(new S[elements + kLine / sizeof(S)]);
    integers.reset(new int32_t[static_cast<size_t>((rows + 2) * row)]);
    workspace = {.memory = aligned(memory.get(), elements),
                 .index = integers.get() + 2 * row,
                 .rows_of = {integers.get(), integers.get() + row},
                 .row = row,
                 .rows = rows};
  }
  /// Returns true if each query sees at most one run of neighboring keys.
  bool sees_runs() const {
    for (size_t i = 0; i + 1 < first_segment.size(); ++i) {
      const auto first = static_cast<size_t>(first_segment[i]), end = static_cast<size_t>(first_segment[i + 1]);
      if (!is_one_run(std::span(segments).subspan(first, end - first))) return false;
    }
    return true;
  }
  void clear_segments() {
    segments.clear();
    first_segment.assign(1, 0);
  }

  std::unique_ptr<S[]> memory;
  std::unique_ptr<int32_t[]> integers;
  core::Workspace<S> workspace;

  // Which keys each query of one or several sentences sees.
  std::vector<int32_t> reach;                  // how far each query of one sentence and head looks; empty = no limit
  std::vector<KeySegment> segments, of_query;  // of all these queries, and of one of them
  std::vector<int32_t> first_segment;
  std::vector<AttentionPart> parts;           // what the sentence is divided into; empty = nothing
  bool has_runs = false;                      // each query sees one run of keys at most
  int64_t sentence = -1;                      // whose segments and parts these are
  const AttentionPattern* pattern = nullptr;  // whose segments and parts these are

  // What a task points to.
  std::vector<core::Task<S>> tasks;  // that run together
  AttentionDropout dropout;
  GatheredPart<S> gathered_part;
  Copies<S> copies;
  core::StoredTask stored;

 private:
  static constexpr size_t kLine = 64;  ///< bytes of a cache line

  static S* aligned(void* begin, size_t elements) {
    size_t bytes = elements * sizeof(S) + kLine;
    return static_cast<S*>(std::align(kLine, elements * sizeof(S), begin, bytes));
  }
};

}  // namespace lacuna

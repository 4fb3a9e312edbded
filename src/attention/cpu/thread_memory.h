#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "attention/cpu/parts.h"
#include "attention/cpu/task.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"
#include "base/buffer.h"
#include "kernels/parallel.h"

/// The memory that a thread of run.cpp works in, beside the tensors.
namespace lacuna {

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

/// The largest tasks that a thread needs memory for.
struct TaskSizes {
  int64_t max_keys, max_queries, d_head;
  int64_t at_once = 1;  ///< tasks that run together
};

/// The memory of a thread. Calls of attention follow each other quickly in a decoder: the thread keeps it between them.
template <class S>
struct ThreadMemory {
  /// Returns the calling thread's memory, with room for these tasks and no sentence's segments.
  static ThreadMemory& of_this_thread(const core::EntryPoints<S>& core, const TaskSizes& sizes) {
    thread_local ThreadMemory memory;
    memory.prepare(core, sizes);
    return memory;
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
  static constexpr int64_t kMostKept = int64_t{1} << 18;  // numbers that later calls of smaller tasks keep

  void prepare(const core::EntryPoints<S>& core, const TaskSizes& sizes) {
    const int64_t row = core::row_elements(sizes.max_keys), rows = core::tile_rows(sizes.max_queries);
    const int64_t elements = sizes.at_once * core.memory_elements(row, rows, sizes.d_head);
    if (memory_.size() > kMostKept && elements <= kMostKept) {
      memory_.clear();
      integers_.clear();
    }
    int32_t* const integers = integers_.of((rows + 2) * row);
    workspace = {
        .memory = memory_.of(elements), .index = integers + 2 * row, .rows_of = {integers, integers + row}, .row = row, .rows = rows};
    reach.clear();
    clear_segments();
    parts.clear();
    sentence = -1;
  }

  Buffer<S> memory_;
  Buffer<int32_t> integers_;
};

/// Calls f(first, end, memory) for `together` of `tasks` at a time, in parallel.
template <class S, class F>
void for_each_group(const core::EntryPoints<S>& core, const TaskSizes& sizes, int64_t tasks, int64_t together, const F& f) {
  constexpr int64_t kMostChunks = 64;
  const int64_t groups = (tasks + together - 1) / together;
  for_parts(groups, std::max<int64_t>(1, (groups + kMostChunks - 1) / kMostChunks), [&](int64_t begin, int64_t end) {
    ThreadMemory<S>& memory = ThreadMemory<S>::of_this_thread(core, sizes);
    for (int64_t first = begin * together; first < std::min(end * together, tasks); first += together)
      f(first, std::min(first + together, tasks), memory);
  });
}

}  // namespace lacuna

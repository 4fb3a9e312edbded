#pragma once

#include <algorithm>
#include <vector>

#include "attention/cpu/core.h"
#include "attention/cpu/parts.h"

namespace lacuna {

/// The keys of one part at a time, gathered side by side so that the core works on them as on a short sentence; or all rows of a whole
/// sentence, which in q, k and v often lie a power of two apart and push each other out of the caches.
template <class S>
class PartMemory {
 public:
  /// The part of a sentence's task: every query_step-th query, over the gathered keys. Valid until the next call.
  core::Task<S> task(const core::Task<S>& sentence, const AttentionPart& part, int d_head) {
    core::Task<S> task = sentence;
    task.queries = part.num_queries;
    task.keys = static_cast<int>(part.keys.size());
    task.first_position += part.first_query;
    task.position_step = part.query_step;
    task.positions = part.keys.data();
    task.segments = part.segments.data();
    task.first_segment = part.first_segment.data();
    take_queries(task, part);

    gather(part.keys, sentence, d_head, task);
    return task;
  }

  /// The sentence's task with gathered copies of the rows that its products read or write more than once. Valid until the next call.
  core::Task<S> whole(const core::Task<S>& sentence, int d_head) {
    core::Task<S> task = sentence;
    const Whole keys{sentence.keys}, queries{sentence.queries};
    gather(queries, sentence.q, sentence.q_stride, d_head, q_);
    task.q = q_.data();
    task.q_stride = d_head;
    if (sentence.context_gradient == nullptr) {
      gather(keys, sentence.v, sentence.v_stride, d_head, v_);
      task.v = v_.data();
      task.v_stride = d_head;
      return task;
    }
    gather(keys, sentence.k, sentence.k_stride, d_head, k_);
    task.k = k_.data();
    task.k_stride = d_head;
    make_key_gradients(keys, d_head, task);
    gather(queries, sentence.context_gradient, sentence.context_stride, d_head, context_gradient_);
    task.context_gradient = context_gradient_.data();
    task.context_stride = d_head;
    return task;
  }

  /// After a backward pass on the task: adds the gradients of the part's keys and values to the sentence's.
  void add_gradients(const core::Task<S>& sentence, const AttentionPart& part, int d_head) const {
    add_gradients(part.keys, sentence, d_head);
  }
  /// The same after a backward pass on whole(); with `stores`, overwrites the sentence's gradients in place of adding to them.
  void put_gradients(const core::Task<S>& sentence, int d_head, bool stores) const {
    if (!stores) return add_gradients(Whole{sentence.keys}, sentence, d_head);
    const auto store = [&](const std::vector<S>& from, S* rows) {
      for (int64_t j = 0; j < sentence.keys; ++j) std::copy_n(from.data() + j * d_head, d_head, rows + j * sentence.gradient_stride);
    };
    store(k_gradient_, sentence.k_gradient);
    store(v_gradient_, sentence.v_gradient);
  }

 private:
  /// The positions 0, 1, ...
  struct Whole {
    int count;
    size_t size() const { return static_cast<size_t>(count); }
    int32_t operator[](size_t i) const { return static_cast<int32_t>(i); }
  };

  /// Everything that is there for each query: starts at the part's first and steps from one of its queries to the next.
  static void take_queries(core::Task<S>& task, const AttentionPart& part) {
    const auto start = [&](auto*& rows, int64_t stride) {
      if (rows != nullptr) rows += part.first_query * stride;
    };
    start(task.q, task.q_stride);
    start(task.context, task.context_stride);
    start(task.context_gradient, task.context_stride);
    start(task.q_gradient, task.q_gradient_stride);
    start(task.numbers, task.numbers_stride);
    start(task.number_gradients, task.number_gradients_stride);
    start(task.kept, task.kept_stride);
    task.kept_rows = {};
    for (int64_t* stride : {&task.q_stride, &task.context_stride, &task.q_gradient_stride, &task.numbers_stride,
                            &task.number_gradients_stride, &task.kept_stride})
      *stride *= part.query_step;
  }

  template <class Positions>
  void gather(const Positions& positions, const core::Task<S>& sentence, int d_head, core::Task<S>& task) {
    gather(positions, sentence.k, sentence.k_stride, d_head, k_);
    gather(positions, sentence.v, sentence.v_stride, d_head, v_);
    task.k = k_.data();
    task.v = v_.data();
    task.k_stride = task.v_stride = d_head;
    if (sentence.context_gradient != nullptr) make_key_gradients(positions, d_head, task);
  }

  template <class Positions>
  void make_key_gradients(const Positions& positions, int d_head, core::Task<S>& task) {
    k_gradient_.assign(positions.size() * static_cast<size_t>(d_head), 0);
    v_gradient_.assign(k_gradient_.size(), 0);
    task.k_gradient = k_gradient_.data();
    task.v_gradient = v_gradient_.data();
    task.gradient_stride = d_head;
  }

  template <class Positions>
  void add_gradients(const Positions& positions, const core::Task<S>& sentence, int d_head) const {
    scatter(positions, k_gradient_, d_head, sentence.k_gradient, sentence.gradient_stride);
    scatter(positions, v_gradient_, d_head, sentence.v_gradient, sentence.gradient_stride);
  }

  template <class Positions>
  static void gather(const Positions& positions, const S* rows, int64_t stride, int d_head, std::vector<S>& to) {
    to.resize(positions.size() * static_cast<size_t>(d_head));
    S* next = to.data();
    for (size_t i = 0; i < positions.size(); ++i) next = std::copy_n(rows + positions[i] * stride, d_head, next);
  }

  template <class Positions>
  static void scatter(const Positions& positions, const std::vector<S>& from, int d_head, S* rows, int64_t stride) {
    const S* next = from.data();
    for (size_t i = 0; i < positions.size(); ++i)
      for (int c = 0; c < d_head; ++c) rows[positions[i] * stride + c] += *next++;
  }

  std::vector<S> k_, v_, k_gradient_, v_gradient_;  // [keys, d_head]
  std::vector<S> q_, context_gradient_;             // [queries, d_head]
};

}  // namespace lacuna

#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <type_traits>

#include "attention/cpu/pass_tensors.h"
#include "attention/cpu/thread_memory.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// Makes the tasks of a call. Tasks work on numbers of type S; in the tensors they are `Stored`.
template <class S, class Stored>
class TaskBuilder {
 public:
  /// rounds: core::EntryPoints::rounds.
  TaskBuilder(const AttentionCall& call, const ForwardContext& context, const PassTensors<S>& pass, bool (*rounds)(int64_t, int64_t, bool))
      : call_(call), context_(context), pass_(pass), rounds_(rounds) {}

  /// Returns the task of a sentence and head, over the segments in `memory`. It points there and to the call's tensors.
  core::Task<S> task(int64_t b, int64_t head, ThreadMemory<S>& memory) const {
    const Place place = place_of(b, head);
    core::Task<S> task;
    task.queries = call_.queries->length(b);
    task.keys = call_.keys->count[static_cast<size_t>(b)];
    task.is_backward = pass_.is_backward;
    task.rows_alike = call_.rows_alike;
    task.first_position = query_position(call_, b, 0);
    if (has_slots()) task.slots = call_.keys->slots.data() + call_.keys->begin[static_cast<size_t>(b)];
    task.segments = memory.segments.data();
    task.first_segment = memory.first_segment.data();
    memory.dropout = dropout_of(call_, context_, b, head);
    if (memory.dropout.is_active()) task.dropout = &memory.dropout;
    pass_.numbers.add_to(task, place.query, head);
    if (pass_.kept_number.defined())
      task.kept_number = {pass_.kept_number.template data_ptr<S>() + place.query * num_heads() + head, num_heads()};
    task.kept_rows = pass_.kept_weights.rows(b, head);
    if (reads_stored(task, memory)) {
      memory.stored = stored_rows(place);
      task.stored = &memory.stored;
    } else {
      add_rows(task, place, memory.copies);
    }
    return task;
  }

  /// Sets the gradients of the sentence's k and v to 0, if nothing else has. To be called just before they are summed:
  /// then they lie in the cache.
  void clear_sums(int64_t b, int64_t head) const {
    if (!pass_.is_backward || !pass_.has_uncleared_sums) return;
    const int64_t count = call_.keys->count[static_cast<size_t>(b)];
    for (const Tensor* gradient : {&pass_.gradients.k, &pass_.gradients.v}) {
      Stored* const rows = row_of<Stored>(*gradient, call_.keys->begin[static_cast<size_t>(b)], head);
      for (int64_t i = 0; i < count; ++i) std::fill_n(rows + i * gradient->stride(0), d_head(), Stored(0));
    }
  }

  /// Writes the results of a task that worked in copies to the tensors.
  void store_results(const core::Task<S>& task, int64_t b, int64_t head) const {
    if constexpr (kIsConverted) {
      if (task.stored != nullptr) return;
      const Place place = place_of(b, head);
      const auto store = [&](const S* copy, int count, const Tensor& rows, int64_t first) {
        row_kernels<S>().narrow_rows(count, d_head(), copy, bits_of_row(rows, first, head), rows.stride(0));
      };
      if (!task.is_backward) return store(task.context.data, task.queries, pass_.context, place.query);
      store(task.q_gradient.data, task.queries, pass_.gradients.q, place.query);
      store(task.k_gradient.data, task.keys, pass_.gradients.k, place.key);
      store(task.v_gradient.data, task.keys, pass_.gradients.v, place.key);
    }
  }

  /// True if tasks may work in copies of the tensors' rows.
  static constexpr bool kIsConverted = !std::is_same_v<S, Stored>;

 private:
  /// The first rows of a task in the tensors.
  struct Place {
    int64_t query, key, head;
  };
  Place place_of(int64_t b, int64_t head) const {
    return {.query = call_.queries->begin(b), .key = has_slots() ? 0 : call_.keys->begin[static_cast<size_t>(b)], .head = head};
  }
  bool has_slots() const { return !call_.keys->slots.empty(); }
  int64_t num_heads() const { return call_.q.size(1); }
  int64_t d_head() const { return call_.q.size(2); }

  /// Returns a pointer to head `head` of row `row`; null for a tensor without rows, which has no memory.
  template <class Number>
  static Number* row_of(const Tensor& rows, int64_t row, int64_t head) {
    Number* const first = rows.data_ptr<Number>();
    return first != nullptr ? first + row * rows.stride(0) + head * rows.stride(1) : nullptr;
  }
  /// Returns the same for a bf16 tensor, as the bits of its numbers.
  static uint16_t* bits_of_row(const Tensor& rows, int64_t row, int64_t head) {
    at::BFloat16* const first = row_of<at::BFloat16>(rows, row, head);
    return first != nullptr ? &first->x : nullptr;
  }

  /// Returns true if the task's products read and write the tensors' bf16.
  bool reads_stored(const core::Task<S>& task, const ThreadMemory<S>& memory) const {
    if (!kIsConverted || rounds_ == nullptr || !memory.has_runs || has_slots()) return false;
    return rounds_(task.queries, task.keys, task.rows_alike);
  }
  core::StoredTask stored_rows(const Place& place) const {
    const auto read = [&](const Tensor& rows, int64_t first) {
      return core::Rows<const uint16_t>{bits_of_row(rows, first, place.head), rows.stride(0)};
    };
    const auto written = [&](const Tensor& rows, int64_t first) {
      return core::Rows<uint16_t>{bits_of_row(rows, first, place.head), rows.stride(0)};
    };
    core::StoredTask stored = {};
    stored.q = read(call_.q, place.query);
    stored.k = read(call_.k, place.key);
    stored.v = read(call_.v, place.key);
    if (!pass_.is_backward) {
      stored.context = written(pass_.context, place.query);
      return stored;
    }
    stored.context_gradient = read(pass_.context, place.query);
    stored.q_gradient = written(pass_.gradients.q, place.query);
    stored.k_gradient = written(pass_.gradients.k, place.key);
    stored.v_gradient = written(pass_.gradients.v, place.key);
    return stored;
  }

  /// Gives the task its rows: in the tensors or, where these hold other numbers, in contiguous copies.
  void add_rows(core::Task<S>& task, const Place& place, Copies<S>& copies) const {
    task.q = read(call_.q, place.query, place.head, task.queries, copies.q);
    task.k = read(call_.k, place.key, place.head, task.keys, copies.k);
    task.v = read(call_.v, place.key, place.head, task.keys, copies.v);
    if (!pass_.is_backward) {
      task.context = written(pass_.context, place.query, place.head, task.queries, copies.context);
      return;
    }
    task.context_gradient = read(pass_.context, place.query, place.head, task.queries, copies.context);
    task.q_gradient = written(pass_.gradients.q, place.query, place.head, task.queries, copies.q_gradient);
    task.k_gradient = summed(pass_.gradients.k, place.key, place.head, task.keys, copies.k_gradient);
    task.v_gradient = summed(pass_.gradients.v, place.key, place.head, task.keys, copies.v_gradient);
  }
  core::Rows<const S> read(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    const core::Rows<S> to = written(rows, first, head, count, copy);
    if constexpr (kIsConverted) row_kernels<S>().widen_rows(count, d_head(), bits_of_row(rows, first, head), rows.stride(0), to.data);
    return {to.data, to.stride};
  }
  /// Returns rows that the task writes once each.
  core::Rows<S> written(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    if constexpr (kIsConverted) {
      return {copy.of(count * d_head()), d_head()};
    } else {
      return {row_of<S>(rows, first, head), rows.stride(0)};
    }
  }
  /// Returns rows that the task adds to; copies are 0 at first.
  core::Rows<S> summed(const Tensor& rows, int64_t first, int64_t head, int count, Buffer<S>& copy) const {
    const core::Rows<S> sums = written(rows, first, head, count, copy);
    if constexpr (kIsConverted) std::fill_n(sums.data, count * d_head(), S(0));
    return sums;
  }

  const AttentionCall& call_;
  const ForwardContext& context_;
  const PassTensors<S>& pass_;
  bool (*const rounds_)(int64_t, int64_t, bool);
};

}  // namespace lacuna

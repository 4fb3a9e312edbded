#include "attention/cpu/step.h"

#include <algorithm>
#include <array>

#include "attention/cpu/probed_task.h"
#include "attention/cpu/run.h"
#include "attention/cpu/thread_memory.h"

namespace lacuna {
namespace {

using Memory = ThreadMemory<float>;

/// Cuts the call into tasks, joins small ones, and runs them in parallel.
class StepRun {
 public:
  explicit StepRun(const StepCall& call)
      : call_(call), constants_(constants_of(*call.type, call.d_head, call.scale, false, float_rows(call.type->entry()))) {
    for (const int32_t count : call.keys.count) sizes_.max_keys = std::max<int64_t>(sizes_.max_keys, count);
    for (int64_t b = 0; b < num_sentences(); ++b) max_length_ = std::max<int64_t>(max_length_, length(b));
    sizes_.max_queries = std::max(max_length_, num_heads());  // KeptRows::kRows have room in any case
    sizes_.d_head = call.d_head;
  }

  void run() {
    if (!call_.keys.slots.empty()) return run_single_queries();
    if (tasks_run_together()) return run_few_queries();
    for_each_group(core_, sizes_, num_sentences() * num_heads(), 1,
                   [&](int64_t i, int64_t /*end*/, Memory& memory) { run_sentence(i / num_heads(), i % num_heads(), memory); });
  }

 private:
  int64_t num_heads() const { return call_.heads.count; }
  int64_t num_sentences() const { return std::ssize(call_.keys.count); }
  int64_t first_query(int64_t b) const { return call_.queries[static_cast<size_t>(b)]; }
  int64_t length(int64_t b) const { return first_query(b + 1) - first_query(b); }
  int32_t first_key(int64_t b) const { return call_.keys.begin[static_cast<size_t>(b)]; }
  int32_t num_keys(int64_t b) const { return call_.keys.count[static_cast<size_t>(b)]; }
  int32_t position(int64_t b) const { return call_.first_position.empty() ? 0 : call_.first_position[static_cast<size_t>(b)]; }

  // --- one query a sentence, with slots ---

  /// All heads of some sentences are queries of one task, so that their rows become weights together.
  void run_single_queries() {
    constexpr int64_t kRows = core::KeptRows<float>::kRows;  // of the lowest tile
    const int64_t together = constants_.uses_positions ? 1 : std::max<int64_t>(1, kRows / num_heads());
    for_each_group(core_, sizes_, num_sentences(), together, [&](int64_t first, int64_t end, Memory& memory) {
      memory.clear_segments();
      for (int64_t b = first; b < end; ++b)
        for (int64_t head = 0; head < num_heads(); ++head) add_segments(b, head, first_key(b) - first_key(first), memory);
      core::Task<float> task = task_of(first, 0, memory);
      task.slots = call_.keys.slots.data() + first_key(first);
      task.heads = call_.heads;
      task.queries = static_cast<int>((end - first) * num_heads());
      task.keys = static_cast<int>(sizes_.max_keys);
      task.position_step = 0;
      task.context.stride = call_.d_head;
      run_task(task, memory);
    });
  }

  // --- few queries a sentence ---

  /// Returns true if the rows of several sentences and heads may become weights together. Longer rows fill vectors
  /// alone, and would take much memory.
  bool tasks_run_together() const {
    constexpr int64_t kFewQueries = 16, kShortKeys = 64;
    if (call_.probe != nullptr || call_.type->entry().reach != nullptr || !call_.type->has_one_pattern()) return false;
    return max_length_ < kFewQueries && sizes_.max_keys <= kShortKeys;
  }
  void run_few_queries() {
    constexpr int64_t kMostTogether = 8;  // each task has memory of its own
    const int64_t fitting = core::kMaxRowsTogether / std::max<int64_t>(1, max_length_);
    sizes_.at_once = std::clamp<int64_t>(fitting, 1, kMostTogether);
    for_each_group(core_, sizes_, num_sentences() * num_heads(), sizes_.at_once,
                   [&](int64_t first, int64_t end, Memory& memory) { run_together(first, end, memory); });
  }
  /// Runs tasks first to end - 1: the heads of the first sentence, then of the second, and so on.
  void run_together(int64_t first, int64_t end, Memory& memory) const {
    memory.clear_segments();
    memory.tasks.clear();
    const int64_t first_sentence = first / num_heads();
    for (int64_t b = first_sentence; b <= (end - 1) / num_heads(); ++b) add_segments(b, 0, 0, memory);
    for (int64_t i = first; i < end; ++i) {
      const int64_t b = i / num_heads();
      if (length(b) == 0) continue;
      memory.tasks.push_back(task_of(b, i % num_heads(), memory));
      memory.tasks.back().first_segment += first_query(b) - first_query(first_sentence);
    }
    if (memory.tasks.empty()) return;
    memory.workspace.row = core::row_elements(sizes_.max_keys);
    core_.forward_together(constants_, memory.tasks.data(), static_cast<int>(memory.tasks.size()), memory.workspace);
  }

  // --- any number of queries a sentence ---

  void run_sentence(int64_t b, int64_t head, Memory& memory) const {
    if (length(b) == 0) return;
    memory.clear_segments();
    add_segments(b, head, 0, memory);
    core::Task<float> task = task_of(b, head, memory);
    if (call_.probe == nullptr) return run_task(task, memory);
    const ProbedTask probed = {*call_.probe, call_.layer, call_.site, b, head, position(b), nullptr};
    task.probe = &probed;
    task.show = ProbedTask::show<float>;
    run_task(task, memory);
  }

  void run_task(const core::Task<float>& task, Memory& memory) const {
    memory.workspace.row = core::row_elements(task.keys);
    core_.forward(constants_, task, memory.workspace);
  }

  /// Returns the task of a sentence and head, over the segments in `memory`.
  core::Task<float> task_of(int64_t b, int64_t head, const Memory& memory) const {
    const int64_t query = first_query(b), key = call_.keys.slots.empty() ? first_key(b) : 0;
    const auto rows_from = [&](const core::Rows<const float>& rows, int64_t row, int64_t head_step) {
      if (rows.data == nullptr) return rows;
      return core::Rows<const float>{rows.row(row) + head * head_step, rows.stride};
    };
    const int64_t context_row = num_heads() * call_.d_head;
    core::Task<float> task;
    task.queries = static_cast<int>(length(b));
    task.keys = num_keys(b);
    task.rows_alike = true;
    task.first_position = position(b);
    task.segments = memory.segments.data();
    task.first_segment = memory.first_segment.data();
    task.q = rows_from(call_.q, query, call_.heads.q);
    task.k = rows_from(call_.k, key, call_.heads.k);
    task.v = rows_from(call_.v, key, call_.heads.v);
    task.numbers = rows_from(call_.numbers, query, call_.heads.numbers);
    task.heads.numbers = call_.heads.numbers;
    task.context = {call_.context + query * context_row + head * call_.d_head, context_row};
    return task;
  }

  /// Appends the segments of all queries of a sentence, with `shift` added to the keys' positions. A probe sees
  /// everything that the pattern shows.
  void add_segments(int64_t b, int64_t head, int32_t shift, Memory& memory) const {
    for (int32_t i = 0; i < length(b); ++i) {
      const int32_t query = position(b) + i, seen = call_.causal ? std::min(num_keys(b), query + 1) : num_keys(b);
      memory.of_query.clear();
      call_.type->pattern(head).append_visible(query, seen, memory.of_query);
      if (call_.type->entry().reach != nullptr && call_.probe == nullptr)
        keep_near(query, reach_of(first_query(b) + i, head), memory.of_query);
      for (KeySegment& segment : memory.of_query) segment.begin += shift;
      memory.segments.insert(memory.segments.end(), memory.of_query.begin(), memory.of_query.end());
      memory.first_segment.push_back(static_cast<int32_t>(memory.segments.size()));
    }
  }
  /// Returns how far a query looks.
  int32_t reach_of(int64_t query, int64_t head) const {
    std::array<double, 4> numbers = {};  // more than any type has
    std::copy_n(call_.numbers.row(query) + head * call_.heads.numbers, constants_.num_numbers, numbers.begin());
    return call_.type->entry().reach(call_.type->options(), numbers.data());
  }

  const StepCall& call_;
  const core::EntryPoints<float> core_ = float_core();
  const core::CallConstants<float> constants_;
  TaskSizes sizes_ = {};
  int64_t max_length_ = 0;
};

}  // namespace

void run_step(const StepCall& call) {
  StepRun(call).run();
}

}  // namespace lacuna

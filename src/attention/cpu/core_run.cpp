#include "attention/cpu/core_run.h"

#include <algorithm>

#include "attention/cpu/core_functions.h"
#include "attention/cpu/core_thread.h"
#include "attention/cpu/gradients_of_call.h"
#include "attention/cpu/kept_rows.h"
#include "attention/cpu/numbers_of_call.h"
#include "attention/cpu/onlooker.h"
#include "attention/cpu/task_rows.h"
#include "attention/registry.h"
#include "kernels/parallel.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace {

/// Runs every sentence and head of one call, forward or backward. Works on numbers of type S; in the tensors they are `Stored`.
template <class S, class Stored = S>
class Run {
 public:
  Run(const AttentionCall& call, const ForwardContext& context) : call_(call), context_(context), numbers_(call) {
    const AttentionType& type = call.type->of_scores();
    const types::TypeEntry& entry = type.entry();
    shared_ = {.d_head = static_cast<int>(call.q.size(2)),
               .scale = static_cast<S>(call.scale),
               .rows = rows_for(entry, S()),
               .options = type.options(),
               .sparse = entry.is_sparse(type.options()),
               .needs_scores = entry.needs_scores(type.options()),
               .uses_positions = entry.info.uses_positions,
               .training = context.training,
               .num_numbers = type.num_numbers()};
    keeps_number_ = entry.keeps_number && !has_mask();
    keeps_weights_ = !shared_.needs_scores && !has_mask();
    if (has_mask()) describe_mask();
    if (entry.reach != nullptr && !has_mask()) numbers_of_reach_ = numbers_.values().to(at::kDouble).contiguous();
    for (const int32_t count : call.keys->count) max_keys_ = std::max<int64_t>(max_keys_, count);
  }

  Tensor forward(CoreResults* results) {
    context_rows_ = at::empty({call_.q.size(0), num_heads(), call_.v.size(2)}, call_.q.options());
    is_probed_ = is_probed(call_, context_);
    if (has_mask() && context_.is_mask_pass()) mask_results_ = at::zeros({call_.q.size(0), num_heads(), kMaskResults}, call_.q.options());
    const auto work = has_mask() ? functions_.masked_forward : functions_.forward;
    if (results != nullptr && keeps_number_) kept_ = at::empty({call_.q.size(0), num_heads()}, scalars());
    if (results != nullptr && keeps_weights_ && !is_probed_) kept_rows_ = {call_, keeps_lists(), functions_.rounds, {}};
    for_each_task([&](const core::Task<S>& task, const core::Workspace<S>& workspace) { work(shared_, task, workspace); });
    if (results != nullptr) *results = {.of_mask = mask_results_, .kept = kept_, .weights = kept_rows_.memory()};
    return context_rows_;
  }

  AttentionGradients backward(const Tensor& context_gradient, const CoreBackward& given) {
    kept_ = given.kept;
    clears_rows_ = !has_mask() && covers_in_order(*call_.keys, call_.k.size(0));
    if (given.weights.weights.defined()) kept_rows_ = {call_, keeps_lists(), functions_.rounds, given.weights};
    context_rows_ = context_gradient.contiguous();
    gradients_ = gradients_of(call_, given, clears_rows_);
    if (has_mask() && context_.is_mask_pass()) {
      gradients_.mask_q = at::empty(call_.q.sizes(), call_.q.options());
      gradients_.mask_k = at::zeros(call_.k.sizes(), call_.k.options());
      if (given.of_mask.defined()) mask_results_ = given.of_mask.contiguous();
    }
    numbers_.make_gradients();
    is_backward_ = true;
    const auto work = has_mask() ? functions_.masked_backward : functions_.backward;
    for_each_task([&](const core::Task<S>& task, const core::Workspace<S>& workspace) { work(shared_, task, workspace); });
    gradients_.numbers = numbers_.gradients();
    return gradients_;
  }

 private:
  int64_t num_heads() const { return call_.q.size(1); }
  bool keeps_lists() const { return shared_.sparse && !kIsConverted; }  // the core for bf16 has none
  bool has_mask() const { return call_.type->takes_mask(); }
  static at::TensorOptions scalars() { return at::TensorOptions(c10::CppTypeToScalarType<S>::value); }

  void describe_mask() {
    const types::TypeEntry& entry = call_.type->entry();
    shared_.mask_rows = rows_for(entry, S());
    shared_.mask_options = call_.type->options();
    shared_.sparse = shared_.sparse && entry.is_sparse(call_.type->options()) && !context_.is_mask_pass();
    shared_.is_mask_pass = context_.is_mask_pass();
    shared_.step = context_.step;
  }

  /// Sentences and heads in parallel. Each owns its rows of every gradient, so the bits do not depend on threads; where sentences share
  /// keys, heads alone run in parallel.
  template <class Work>
  void for_each_task(Work work) {
    if (heads_are_queries()) return for_each_query(work);
    if (tasks_go_together()) return for_each_few_tasks();
    const int64_t sentences = call_.queries->num_sentences(), heads = num_heads();
    const bool heads_alone = is_backward_ && !clears_rows_ && shares_keys(*call_.keys);
    const int64_t tasks = heads_alone ? heads : sentences * heads;
    for_each_group(tasks, 1, [&](int64_t i, int64_t next, Thread<S>& thread) {
      if (heads_alone) {
        for (int64_t b = 0; b < sentences; ++b) run_task(b, i, thread, work);
      } else {
        if (next < tasks) fetch_task(next / heads, next % heads, thread.ahead);
        run_task(i / heads, i % heads, thread, work);
      }
    });
  }

  /// A step of a decoder, one query a sentence: all heads of some sentences are then queries of one task, so that their rows are weighed
  /// together.
  bool heads_are_queries() const {
    if (is_backward_ || is_probed_ || has_mask() || kIsConverted || call_.keys->slots.empty() || context_.training) return false;
    return call_.queries->num_tokens() == call_.queries->num_sentences() && call_.queries->max_length() == 1;
  }
  template <class Work>
  void for_each_query(Work work) {
    constexpr int64_t kRows = core::KeptRows<S>::kRows;  // of the lowest tile
    const int64_t together = shared_.uses_positions ? 1 : std::max<int64_t>(1, kRows / num_heads());
    for_each_group(call_.queries->num_sentences(), together,
                   [&](int64_t first, int64_t last, Thread<S>& thread) { run_heads(first, last, thread, work); });
  }
  template <class Work>
  void run_heads(int64_t first, int64_t last, Thread<S>& thread, Work work) {
    thread.segments.clear();
    thread.first_segment.assign(1, 0);
    const auto first_key = [&](int64_t b) { return call_.keys->begin[static_cast<size_t>(b)]; };
    for (int64_t b = first; b < last; ++b)
      for (int64_t head = 0; head < num_heads(); ++head) {
        find_reach(b, head, thread);
        add_segments(b, head, first_key(b) - first_key(first), thread);
      }
    core::Task<S> task = task_for(first, 0, thread);
    task.keys = static_cast<int>(max_keys_);
    task.heads = static_cast<int>(num_heads());
    task.queries = static_cast<int>(last - first) * task.heads;
    task.position_step = 0;
    task.q_step = call_.q.stride(1);
    task.k_step = call_.k.stride(1);
    task.v_step = call_.v.stride(1);
    task.context_stride = context_rows_.stride(1);
    task.kept_stride = 1;
    run_watched(task, first, 0, nullptr, thread, work);
  }

  /// Cross attention of such a step, or another call of few queries: some heads of some sentences are tasks that go together.
  bool tasks_go_together() const {
    constexpr int64_t kFew = 16, kShort = 64;  // longer rows are vectors enough each, and take much memory
    if (is_backward_ || is_probed_ || has_mask() || kIsConverted || !call_.rows_alike || !call_.keys->slots.empty()) return false;
    if (context_.training || numbers_of_reach_.defined() || !call_.type->has_one_pattern()) return false;
    return call_.queries->max_length() < kFew && max_keys_ <= kShort && functions_.forward_together != nullptr;
  }
  void for_each_few_tasks() {
    constexpr int64_t kMost = 8;  // each has memory of its own
    const int64_t heads = num_heads(), tasks = call_.queries->num_sentences() * heads;
    const int64_t together = std::clamp<int64_t>(core::kRowsTogether / std::max<int64_t>(1, call_.queries->max_length()), 1, kMost);
    const auto run = [&](int64_t first, int64_t last, Thread<S>& thread) {
      for (int64_t i = last; i < std::min(last + together, tasks); ++i) fetch_task(i / heads, i % heads, thread.ahead);
      run_together(first, last, thread);
    };
    for_each_group(tasks, together, run, together);
  }
  /// Tasks first to last - 1: the heads of the first sentence, then of the second, and so on.
  void run_together(int64_t first, int64_t last, Thread<S>& thread) {
    thread.segments.clear();
    thread.first_segment.assign(1, 0);
    thread.tasks.clear();
    const int64_t heads = num_heads(), first_query = call_.queries->begin(first / heads);
    for (int64_t b = first / heads; b <= (last - 1) / heads; ++b) add_segments(b, 0, 0, thread);
    for (int64_t i = first; i < last; ++i) {
      if (call_.queries->length(i / heads) == 0) continue;
      thread.tasks.push_back(task_for(i / heads, i % heads, thread));
      thread.tasks.back().first_segment += call_.queries->begin(i / heads) - first_query;
    }
    if (thread.tasks.empty()) return;
    thread.workspace.row = core::row_elements(max_keys_);
    functions_.forward_together(shared_, thread.tasks.data(), static_cast<int>(thread.tasks.size()), thread.workspace);
  }

  /// Calls f(first, last, thread) for `together` of `tasks` at a time, of which so many have memory `at_once`.
  template <class F>
  void for_each_group(int64_t tasks, int64_t together, F f, int64_t at_once = 1) {
    constexpr int64_t kParts = 64;  // or so, at most: each makes its own memory
    const int64_t groups = (tasks + together - 1) / together;
    for_parts(groups, std::max<int64_t>(1, (groups + kParts - 1) / kParts), [&](int64_t begin, int64_t end) {
      Thread<S> thread(functions_, max_keys_, max_queries_, call_.q.size(2), has_mask(), at_once);
      for (int64_t first = begin * together; first < std::min(end * together, tasks); first += together)
        f(first, std::min(first + together, tasks), thread);
    });
  }

  template <class Work>
  void run_task(int64_t b, int64_t head, Thread<S>& thread, Work work) {
    if (call_.queries->length(b) == 0) return clear_key_gradients(b, head);
    find_segments(b, head, thread);
    const core::Task<S> task = task_for(b, head, thread);
    run_parts(task, b, head, thread, work);
    if constexpr (kIsConverted)
      if (task.stored == nullptr) store_results(task, b, head);
  }

  /// Asks memory for what a task will read and write: of a short sentence at once, else while another task runs.
  [[gnu::always_inline]] void fetch_task(int64_t b, int64_t head, core::RowsAhead& ahead) const {
    constexpr int64_t kShort = 64;
    ahead.clear();
    if (!call_.keys->slots.empty()) return;
    const int64_t query = call_.queries->begin(b), queries = call_.queries->length(b);
    const int64_t key = call_.keys->begin[static_cast<size_t>(b)], keys = call_.keys->count[static_cast<size_t>(b)];
    rows_.add(call_.q, query, queries, head, ahead);
    rows_.add(call_.k, key, keys, head, ahead);
    rows_.add(call_.v, key, keys, head, ahead);
    rows_.add(context_rows_, query, queries, head, ahead);
    rows_.add(gradients_.q, query, queries, head, ahead);
    rows_.add(gradients_.k, key, keys, head, ahead);
    rows_.add(gradients_.v, key, keys, head, ahead);
    if (queries <= kShort && keys <= kShort) return ahead.fetch_all();
    kept_rows_.add(b, head, ahead);
  }

  /// Unless they were made with zeros. To be called just before they are summed: then they lie in the cache.
  void clear_key_gradients(int64_t b, int64_t head) const {
    if (!is_backward_ || !clears_rows_) return;
    const int64_t first = call_.keys->begin[static_cast<size_t>(b)], count = call_.keys->count[static_cast<size_t>(b)];
    for (const Tensor* gradient : {&gradients_.k, &gradients_.v}) {
      Stored* const rows = row_of<Stored>(*gradient, first, head);
      for (int64_t i = 0; i < count; ++i) std::fill_n(rows + i * gradient->stride(0), shared_.d_head, Stored(0));
    }
  }

  template <class Work>
  void run_parts(const core::Task<S>& task, int64_t b, int64_t head, Thread<S>& thread, Work work) {
    if (thread.parts.empty() && gathers_rows(task)) {
      run_watched(thread.part_memory.whole(task, shared_.d_head), b, head, nullptr, thread, work);
      if (is_backward_) thread.part_memory.put_gradients(task, shared_.d_head, clears_rows_);
      return;
    }
    if constexpr (!kIsConverted) clear_key_gradients(b, head);  // converted ones are stored whole
    if (thread.parts.empty()) return run_watched(task, b, head, nullptr, thread, work);
    for (const AttentionPart& part : thread.parts) {
      run_watched(thread.part_memory.task(task, part, shared_.d_head), b, head, &part, thread, work);
      if (is_backward_) thread.part_memory.add_gradients(task, part, shared_.d_head);
    }
  }

  /// True if a sentence is long enough that its rows are worth moving side by side.
  bool gathers_rows(const core::Task<S>& task) const {
    constexpr int kLong = 64, kFewQueries = 16;
    const bool are_apart = task.k_stride != shared_.d_head || task.v_stride != shared_.d_head || task.q_stride != shared_.d_head;
    return are_apart && !kIsConverted && task.keys >= kLong && task.queries >= kFewQueries && task.slots == nullptr && !has_mask();
  }

  template <class Work>
  void run_watched(core::Task<S> task, int64_t b, int64_t head, const AttentionPart* part, Thread<S>& thread, Work work) {
    thread.workspace.row = core::row_elements(task.keys);
    if (!is_probed_) return work(task, thread.workspace);
    const Onlooker onlooker = {call_, *context_.probe, b, head, part};
    task.probe = &onlooker;
    task.show = show<S>;
    task.show_mask = show_mask<S>;
    work(task, thread.workspace);
  }

  core::Task<S> task_for(int64_t b, int64_t head, Thread<S>& thread) {
    const int64_t query = call_.queries->begin(b), first_key = call_.keys->begin[static_cast<size_t>(b)];
    const bool has_slots = !call_.keys->slots.empty();
    const int64_t key_row = has_slots ? 0 : first_key;
    core::Task<S> task = {};
    task.queries = call_.queries->length(b);
    task.heads = 1;
    task.keys = call_.keys->count[static_cast<size_t>(b)];
    task.is_backward = is_backward_;
    task.rows_alike = call_.rows_alike;
    task.first_position = query_position(call_, b, 0);
    task.position_step = 1;
    task.slots = has_slots ? call_.keys->slots.data() + first_key : nullptr;
    task.segments = thread.segments.data();
    task.first_segment = thread.first_segment.data();
    thread.dropout = dropout_of(call_, context_, b, head);
    task.dropout = thread.dropout.is_active() ? &thread.dropout : nullptr;
    numbers_.add_to(task, query, head);
    task.kept_stride = num_heads();
    if (kept_.defined()) task.kept = kept_.template data_ptr<S>() + query * num_heads() + head;
    task.kept_rows = kept_rows_.of(b, head);
    if (has_mask()) add_mask(task, query, key_row, head);
    if constexpr (kIsConverted) {
      if (functions_.rounds != nullptr && thread.has_runs && !has_slots && functions_.rounds(task.queries, task.keys, task.rows_alike)) {
        thread.stored = stored_rows(query, key_row, head);
        task.stored = &thread.stored;
        return task;
      }
    }
    add_rows(task, query, key_row, head, thread.copies);
    return task;
  }

  /// In the tensors.
  core::StoredTask stored_rows(int64_t query, int64_t key_row, int64_t head) const {
    const auto read = [&](const Tensor& rows, int64_t first) {
      return core::StoredRows<const uint16_t>{bits_of_row(rows, first, head), rows.stride(0)};
    };
    const auto written = [&](const Tensor& rows, int64_t first) {
      return core::StoredRows<uint16_t>{bits_of_row(rows, first, head), rows.stride(0)};
    };
    core::StoredTask stored = {};
    stored.q = read(call_.q, query);
    stored.k = read(call_.k, key_row);
    stored.v = read(call_.v, key_row);
    if (!is_backward_) {
      stored.context = written(context_rows_, query);
      return stored;
    }
    stored.context_gradient = read(context_rows_, query);
    stored.q_gradient = written(gradients_.q, query);
    stored.k_gradient = written(gradients_.k, key_row);
    stored.v_gradient = written(gradients_.v, key_row);
    return stored;
  }

  /// In the tensors or, of other numbers, in copies.
  void add_rows(core::Task<S>& task, int64_t query, int64_t key_row, int64_t head, Copies<S>& copies) const {
    task.q = rows_.read(call_.q, query, head, task.queries, copies.q);
    task.k = rows_.read(call_.k, key_row, head, task.keys, copies.k);
    task.v = rows_.read(call_.v, key_row, head, task.keys, copies.v);
    task.q_stride = rows_.stride(call_.q);
    task.k_stride = rows_.stride(call_.k);
    task.v_stride = rows_.stride(call_.v);
    task.context_stride = rows_.stride(context_rows_);
    if (!is_backward_) {
      task.context = rows_.written(context_rows_, query, head, task.queries, copies.context);
      return;
    }
    task.context_gradient = rows_.read(context_rows_, query, head, task.queries, copies.context);
    task.q_gradient = rows_.written(gradients_.q, query, head, task.queries, copies.q_gradient);
    if (gradients_.k.defined()) task.k_gradient = rows_.summed(gradients_.k, key_row, head, task.keys, copies.k_gradient);
    if (gradients_.v.defined()) task.v_gradient = rows_.summed(gradients_.v, key_row, head, task.keys, copies.v_gradient);
    task.q_gradient_stride = rows_.stride(gradients_.q);
    task.gradient_stride = rows_.stride(gradients_.k.defined() ? gradients_.k : gradients_.q);
  }

  void add_mask(core::Task<S>& task, int64_t query, int64_t key_row, int64_t head) const {
    task.mask_q = row_of<S>(call_.mask_q, query, head);
    task.mask_k = row_of<S>(call_.mask_k, key_row, head);
    task.mask_q_stride = call_.mask_q.stride(0);
    task.mask_k_stride = call_.mask_k.stride(0);
    task.results_stride = num_heads() * kMaskResults;
    if (mask_results_.defined() && is_backward_) task.result_gradients = row_of<S>(mask_results_, query, head);
    if (mask_results_.defined() && !is_backward_) task.results = row_of<S>(mask_results_, query, head);
    if (!gradients_.mask_q.defined()) return;
    task.mask_q_gradient = row_of<S>(gradients_.mask_q, query, head);
    task.mask_k_gradient = row_of<S>(gradients_.mask_k, key_row, head);
  }

  void store_results(const core::Task<S>& task, int64_t b, int64_t head) const {
    const int64_t query = call_.queries->begin(b), key = call_.keys->begin[static_cast<size_t>(b)];
    const auto store = [&](const S* copy, int count, const Tensor& rows, int64_t first) {
      row_kernels<S>().narrow_rows(count, shared_.d_head, copy, bits_of_row(rows, first, head), rows.stride(0));
    };
    if (!is_backward_) return store(task.context, task.queries, context_rows_, query);
    store(task.q_gradient, task.queries, gradients_.q, query);
    store(task.k_gradient, task.keys, gradients_.k, key);
    store(task.v_gradient, task.keys, gradients_.v, key);
  }

  /// Fills in thread.reach. A probe sees everything that the pattern shows.
  void find_reach(int64_t b, int64_t head, Thread<S>& thread) const {
    thread.reach.clear();
    if (!numbers_of_reach_.defined() || is_probed_) return;
    const int64_t stride = num_heads() * shared_.num_numbers, first = call_.queries->begin(b) * stride + head * shared_.num_numbers;
    const double* numbers = numbers_of_reach_.template const_data_ptr<double>() + first;
    for (int64_t i = 0; i < call_.queries->length(b); ++i)
      thread.reach.push_back(call_.type->entry().reach(call_.type->options(), numbers + i * stride));
  }

  void find_segments(int64_t b, int64_t head, Thread<S>& thread) const {
    const AttentionPattern* pattern = &call_.type->pattern(head);
    find_reach(b, head, thread);
    if (thread.reach.empty() && thread.sentence == b && thread.pattern == pattern) return;
    thread.sentence = b;
    thread.pattern = pattern;
    thread.segments.clear();
    thread.first_segment.assign(1, 0);
    add_segments(b, head, 0, thread);
    thread.parts.clear();
    thread.has_runs = thread.sees_runs();
    if (call_.keys->slots.empty() && !has_mask() && !thread.has_runs && !call_.rows_alike)
      thread.parts = attention_parts(call_, b, head, thread.reach);
  }
  /// Of keys `shift` further on.
  void add_segments(int64_t b, int64_t head, int32_t shift, Thread<S>& thread) const {
    for (int32_t i = 0; i < call_.queries->length(b); ++i) {
      const int32_t position = query_position(call_, b, i);
      visible_keys(call_, b, head, position, thread.of_query);
      if (!thread.reach.empty()) keep_near(position, thread.reach[static_cast<size_t>(i)], thread.of_query);
      for (KeySegment& segment : thread.of_query) segment.begin += shift;
      thread.segments.insert(thread.segments.end(), thread.of_query.begin(), thread.of_query.end());
      thread.first_segment.push_back(static_cast<int32_t>(thread.segments.size()));
    }
  }

  static constexpr bool kIsConverted = !std::is_same_v<S, Stored>;

  const AttentionCall& call_;
  const ForwardContext& context_;
  const core::Functions<S> functions_ = functions_for(Stored());
  core::Call<S> shared_;
  const TaskRows<S, Stored> rows_{call_.q.size(2)};
  int64_t max_keys_ = 0,
          max_queries_ = std::max<int64_t>(call_.queries->max_length(), num_heads());  // of a task; KeptRows::kRows have room anyway
  bool is_backward_ = false, is_probed_ = false, keeps_number_ = false, keeps_weights_ = false;
  bool clears_rows_ = false;  // of the gradients of k and v, sentence by sentence
  Tensor context_rows_;       // forward: the result; backward: its gradient
  Tensor kept_;               // [Tq, H]
  KeptRowsOfCall<S> kept_rows_;
  Tensor mask_results_;  // [Tq, H, kMaskResults]; backward: their gradient
  NumbersOfCall<S> numbers_;
  Tensor numbers_of_reach_;  // in double, if they say how far a query looks
  AttentionGradients gradients_;
};

/// Calls work(run) with the run for the call's numbers.
template <class Work>
auto with_run(const AttentionCall& call, const ForwardContext& context, Work work) {
  switch (call.q.scalar_type()) {
    case at::kDouble:
      return work(Run<double>(call, context));
    case at::kBFloat16:
      return work(Run<float, at::BFloat16>(call, context));
    default:
      return work(Run<float>(call, context));
  }
}

}  // namespace

bool core_takes(const AttentionCall& call) {
  const auto is_of = [&](at::ScalarType type) {
    return call.q.scalar_type() == type && call.k.scalar_type() == type && call.v.scalar_type() == type;
  };
  if (!call.q.is_cpu() || call.v.size(2) != call.q.size(2)) return false;
  if (is_of(at::kFloat) || is_of(at::kDouble)) return true;
  return is_of(at::kBFloat16) && !call.type->takes_mask() && !shares_keys(*call.keys);
}

Tensor run_core(const AttentionCall& call, const ForwardContext& context, CoreResults* results) {
  return with_run(call, context, [&](auto run) { return run.forward(results); });
}

AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient,
                                     const CoreBackward& given) {
  return with_run(call, context, [&](auto run) { return run.backward(context_gradient, given); });
}

}  // namespace lacuna

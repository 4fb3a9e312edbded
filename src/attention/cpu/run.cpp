#include "attention/cpu/run.h"

#include <algorithm>
#include <atomic>

#include "attention/cpu/probed_task.h"
#include "attention/cpu/step.h"
#include "attention/cpu/task_builder.h"
#include "attention/cpu/thread_memory.h"
#include "attention/registry.h"
#include "base/error.h"

namespace lacuna {
namespace {

std::atomic<CpuTarget>& current_target() {
  static std::atomic<CpuTarget> target = attention_targets().back();
  return target;
}

// Which form of the core and of a type's rows a call uses, by the numbers in its tensors.

core::EntryPoints<float> core_for(float /*stored*/) {
  return float_core();
}
core::EntryPoints<float> core_for(at::BFloat16 /*stored*/) {
  switch (attention_target()) {
    case CpuTarget::kAmx:
      return core::core_amx();
    case CpuTarget::kAvx512Bf16:
      return core::core_avx512_bf16();
    default:
      return core_for(float());
  }
}
core::EntryPoints<double> core_for(double /*stored*/) {
  return core::core_plain();
}
types::RowFunctions<float> rows_for(const types::TypeEntry& entry, float /*number*/) {
  return float_rows(entry);
}
types::RowFunctions<double> rows_for(const types::TypeEntry& entry, double /*number*/) {
  return entry.plain;
}

/// One pass over a call: cuts it into tasks of a sentence and head each and runs them in parallel. Calculates with
/// numbers of type S; in the tensors they are `Stored`.
template <class S, class Stored = S>
class Run {
  using Builder = TaskBuilder<S, Stored>;

 public:
  Run(const AttentionCall& call, const ForwardContext& context) : call_(call), context_(context), pass_(call) {
    const types::TypeEntry& entry = call.type->entry();
    constants_ = constants_of<S>(*call.type, call.q.size(2), call.scale, context.training, rows_for(entry, S()));
    if (entry.reach != nullptr) numbers_of_reach_ = pass_.numbers.values().to(at::kDouble).contiguous();
    for (const int32_t count : call.keys->count) max_keys_ = std::max<int64_t>(max_keys_, count);
  }

  Tensor forward(CoreResults* results) {
    pass_.context = at::empty({call_.q.size(0), num_heads(), call_.v.size(2)}, call_.q.options());
    is_probed_ = is_probed(call_, context_);
    keeps_results_ = results != nullptr;
    if (results != nullptr && call_.type->entry().keeps_number)
      pass_.kept_number = at::empty({call_.q.size(0), num_heads()}, c10::CppTypeToScalarType<S>::value);
    if (results != nullptr && !constants_.needs_scores && !is_probed_) pass_.kept_weights = KeptWeights<S>(call_, core_.rounds, {});
    run_tasks();
    if (results != nullptr) *results = {.kept_number = pass_.kept_number, .weights = pass_.kept_weights.memory()};
    return pass_.context;
  }

  AttentionGradients backward(const Tensor& context_gradient, const CoreResults& kept) {
    pass_.is_backward = true;
    pass_.context = context_gradient.contiguous();
    pass_.kept_number = kept.kept_number;
    if (kept.weights.defined()) pass_.kept_weights = KeptWeights<S>(call_, core_.rounds, kept.weights);
    pass_.has_uncleared_sums = covers_in_order(*call_.keys, call_.k.size(0));
    pass_.gradients = allocate_gradients(call_, pass_.has_uncleared_sums);
    pass_.numbers.make_gradients();
    run_tasks();
    pass_.gradients.numbers = pass_.numbers.gradients();
    return pass_.gradients;
  }

 private:
  int64_t num_heads() const { return call_.q.size(1); }
  int64_t num_sentences() const { return call_.queries->num_sentences(); }

  void run_tasks() {
    if constexpr (std::is_same_v<Stored, float>)
      if (is_step()) return run_step(step_call());
    run_sentences();
  }

  // --- few queries ---

  bool is_step() const {
    if (pass_.is_backward || keeps_results_ || is_probed_ || context_.training) return false;
    if (call_.keys->slots.empty()) return call_.rows_alike;
    return call_.queries->num_tokens() == num_sentences() && call_.queries->max_length() == 1;
  }
  StepCall step_call() const {
    const auto rows = [](const Tensor& tensor) { return core::Rows<const float>{tensor.const_data_ptr<float>(), tensor.stride(0)}; };
    const Tensor& numbers = pass_.numbers.values();
    return {.type = call_.type,
            .scale = call_.scale,
            .causal = call_.causal,
            .d_head = call_.q.size(2),
            .heads = {.count = static_cast<int>(num_heads()),
                      .q = call_.q.stride(1),
                      .k = call_.k.stride(1),
                      .v = call_.v.stride(1),
                      .numbers = numbers.defined() ? numbers.stride(1) : 0},
            .q = rows(call_.q),
            .k = rows(call_.k),
            .v = rows(call_.v),
            .numbers = numbers.defined() ? rows(numbers) : core::Rows<const float>(),
            .context = pass_.context.template data_ptr<float>(),
            .queries = call_.queries->offsets(),
            .first_position = call_.first_position,
            .keys = *call_.keys};
  }

  // --- sentence by sentence ---

  /// Runs sentences and heads in parallel. Each owns its rows of every gradient, so the bits do not depend on threads;
  /// where sentences share keys, heads alone run in parallel.
  void run_sentences() {
    const TaskSizes sizes = {.max_keys = max_keys_, .max_queries = call_.queries->max_length(), .d_head = call_.q.size(2)};
    if (pass_.is_backward && !pass_.has_uncleared_sums && shares_keys(*call_.keys)) {
      for_each_group(core_, sizes, num_heads(), 1, [&](int64_t head, int64_t /*end*/, ThreadMemory<S>& memory) {
        for (int64_t b = 0; b < num_sentences(); ++b) run_sentence(b, head, memory);
      });
    } else {
      for_each_group(core_, sizes, num_sentences() * num_heads(), 1,
                     [&](int64_t i, int64_t /*end*/, ThreadMemory<S>& memory) { run_sentence(i / num_heads(), i % num_heads(), memory); });
    }
  }
  void run_sentence(int64_t b, int64_t head, ThreadMemory<S>& memory) {
    if (call_.queries->length(b) == 0) return builder_.clear_sums(b, head);
    find_segments(b, head, memory);
    const core::Task<S> task = builder_.task(b, head, memory);
    if constexpr (!Builder::kIsConverted) builder_.clear_sums(b, head);  // copies are stored whole
    if (memory.parts.empty()) run_task(task, b, head, nullptr, memory);
    for (const AttentionPart& part : memory.parts) {
      run_task(memory.gathered_part.task(task, part, constants_.d_head), b, head, &part, memory);
      if (pass_.is_backward) memory.gathered_part.add_gradients(task, part, constants_.d_head);
    }
    builder_.store_results(task, b, head);
  }
  /// part: of sentence b, if the task is not the whole of it.
  void run_task(core::Task<S> task, int64_t b, int64_t head, const AttentionPart* part, ThreadMemory<S>& memory) {
    memory.workspace.row = core::row_elements(task.keys);
    const auto run = pass_.is_backward ? core_.backward : core_.forward;
    if (!is_probed_) return run(constants_, task, memory.workspace);
    const ProbedTask probed = {*context_.probe, call_.layer, call_.site, b, head, query_position(call_, b, 0), part};
    task.probe = &probed;
    task.show = ProbedTask::show<S>;
    run(constants_, task, memory.workspace);
  }

  // --- which keys queries see ---

  /// Sets memory.reach. A probe sees everything that the pattern shows.
  void find_reach(int64_t b, int64_t head, ThreadMemory<S>& memory) const {
    memory.reach.clear();
    if (!numbers_of_reach_.defined() || is_probed_) return;
    const int64_t count = constants_.num_numbers, stride = num_heads() * count;
    const double* numbers = numbers_of_reach_.template const_data_ptr<double>() + call_.queries->begin(b) * stride + head * count;
    for (int64_t i = 0; i < call_.queries->length(b); ++i)
      memory.reach.push_back(call_.type->entry().reach(call_.type->options(), numbers + i * stride));
  }
  /// Sets the segments and parts in `memory` to those of a sentence and head, unless they are.
  void find_segments(int64_t b, int64_t head, ThreadMemory<S>& memory) const {
    const AttentionPattern* pattern = &call_.type->pattern(head);
    find_reach(b, head, memory);
    if (memory.reach.empty() && memory.sentence == b && memory.pattern == pattern) return;
    memory.sentence = b;
    memory.pattern = pattern;
    memory.clear_segments();
    add_segments(b, head, memory);
    memory.parts.clear();
    memory.has_runs = memory.sees_runs();
    if (call_.keys->slots.empty() && !memory.has_runs && !call_.rows_alike) memory.parts = attention_parts(call_, b, head, memory.reach);
  }
  /// Appends the segments of all queries of a sentence.
  void add_segments(int64_t b, int64_t head, ThreadMemory<S>& memory) const {
    for (int32_t i = 0; i < call_.queries->length(b); ++i) {
      const int32_t position = query_position(call_, b, i);
      visible_keys(call_, b, head, position, memory.of_query);
      if (!memory.reach.empty()) keep_near(position, memory.reach[static_cast<size_t>(i)], memory.of_query);
      memory.segments.insert(memory.segments.end(), memory.of_query.begin(), memory.of_query.end());
      memory.first_segment.push_back(static_cast<int32_t>(memory.segments.size()));
    }
  }

  const AttentionCall& call_;
  const ForwardContext& context_;
  const core::EntryPoints<S> core_ = core_for(Stored());
  core::CallConstants<S> constants_;
  PassTensors<S> pass_;
  const Builder builder_{call_, context_, pass_, core_.rounds};
  int64_t max_keys_ = 0;
  bool is_probed_ = false, keeps_results_ = false;
  Tensor numbers_of_reach_;  // in double, if they say how far a query looks
};

/// Calls work(run) with the run for the numbers in the call's tensors.
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

std::vector<CpuTarget> attention_targets() {
  std::vector<CpuTarget> targets = {CpuTarget::kAvx2, CpuTarget::kAvx512, CpuTarget::kAvx512Bf16, CpuTarget::kAmx};
  std::erase_if(targets, [](CpuTarget target) { return !cpu_has(target); });
  return targets;
}

CpuTarget attention_target() {
  return current_target();
}

void use_attention_target(CpuTarget target) {
  if (!cpu_has(target)) throw MachineError(std::string("this processor has no ") + name_of(target));
  current_target() = target;
}

core::EntryPoints<float> float_core() {
  return attention_target() == CpuTarget::kAvx2 ? core::core_avx2() : core::core_avx512();
}
types::RowFunctions<float> float_rows(const types::TypeEntry& entry) {
  return attention_target() == CpuTarget::kAvx2 ? entry.avx2() : entry.avx512();
}

bool core_takes(const AttentionCall& call) {
  const auto all_are = [&](at::ScalarType type) {
    return call.q.scalar_type() == type && call.k.scalar_type() == type && call.v.scalar_type() == type;
  };
  if (!call.q.is_cpu() || call.v.size(2) != call.q.size(2)) return false;
  if (all_are(at::kFloat) || all_are(at::kDouble)) return true;
  return all_are(at::kBFloat16) && !shares_keys(*call.keys);
}

Tensor run_core(const AttentionCall& call, const ForwardContext& context, CoreResults* results) {
  return with_run(call, context, [&](auto&& run) { return run.forward(results); });
}

AttentionGradients run_core_backward(const AttentionCall& call, const ForwardContext& context, const Tensor& context_gradient,
                                     const CoreResults& kept) {
  return with_run(call, context, [&](auto&& run) { return run.backward(context_gradient, kept); });
}

}  // namespace lacuna

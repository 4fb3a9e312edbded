#include "attention/gpu/run.h"

#include <algorithm>
#include <string>

#include "attention/cpu/run.h"
#include "attention/gpu/block_schedule.h"
#include "attention/gpu/matrices.h"
#include "attention/registry.h"
#include "base/device.h"
#include "base/recent_values.h"
#include "base/upload.h"

namespace lacuna::cuda {
namespace {

const Engine* emulated = nullptr;

const TypeKernels* kernels_for(const AttentionCall& call) {
  const Engine* engine = engine_for(call.q);
  return engine == nullptr ? nullptr : kernels_of(*engine, *call.type);
}

struct UploadedSchedule {
  ScheduleLists lists;
  BlockSchedule schedule;
  Tensor memory;  ///< that the schedule points to
};

/// Adds the lists of a schedule to an upload.
void add_schedule(UploadedSchedule& one, const AttentionCall& call, bool wants_gradients, Upload& upload) {
  auto& [lists, schedule, memory] = one;
  const std::vector<int32_t>& slots = call.keys->slots;
  const int64_t key_rows = call.k.size(0);
  const bool has_partials = wants_gradients && !lists.tasks.empty();
  const Sources sources = has_partials ? find_sources(lists, *call.keys, key_rows) : Sources();
  schedule = {};
  upload.add(lists.tasks, schedule.tasks);
  upload.add(lists.tiles, schedule.tiles);
  upload.add(lists.short_sentences, schedule.short_sentences);
  upload.add(lists.long_sentences, schedule.long_sentences);
  upload.add(lists.long_tiles, schedule.long_tiles);
  upload.add(lists.long_keys, schedule.long_keys);
  upload.add(lists.chunks, schedule.chunks);
  upload.add(lists.segments, schedule.segments);
  upload.add(lists.first_segment, schedule.first_segment);
  upload.add(lists.key_positions, schedule.key_positions);
  upload.add(lists.heads, schedule.heads);
  if (!slots.empty()) upload.add(slots, schedule.slots);
  upload.add(sources.first, schedule.first_source);
  upload.add(sources.rows, schedule.sources);
  upload.add_block(memory);
  schedule.num_tiles = static_cast<int>(lists.tiles.size());
  schedule.num_chunks = static_cast<int>(lists.chunks.size());
  schedule.num_heads = static_cast<int>(lists.heads.size());
  schedule.num_key_rows = static_cast<int>(key_rows);
  schedule.num_partials = lists.num_partials;
  schedule.num_long_keys = static_cast<int>(lists.long_keys.size());
  schedule.num_long_blocks = lists.num_long_blocks;
}

}  // namespace

class BlockSchedules {
 public:
  std::vector<UploadedSchedule> all;
  FlashSentences flash;

  bool are_sent() const { return all.front().memory.defined(); }
};

namespace {

/// T: as the kernels know the tensors' numbers.
template <class T>
class GpuRun {
 public:
  GpuRun(const AttentionCall& call, const ForwardContext& context, const BlockSchedules& schedules)
      : call_(call), schedules_(schedules), functions_(functions_of(*kernels_for(call))) {
    const types::TypeEntry& entry = call.type->entry();
    shared_ = {};
    shared_.num_heads = static_cast<int>(call.q.size(1));
    shared_.d_head = static_cast<int>(call.q.size(2));
    shared_.width = whole_tiles(shared_.d_head);
    shared_.scale = static_cast<float>(call.scale);
    shared_.sparse = entry.is_sparse(call.type->options());
    shared_.needs_scores = entry.needs_scores(call.type->options());
    shared_.uses_positions = entry.info.uses_positions;
    shared_.training = context.training;
    shared_.is_aligned = is_aligned(call.q) && is_aligned(call.k) && is_aligned(call.v);
    shared_.q = matrix_of<const T>(call.q);
    shared_.k = matrix_of<const T>(call.k);
    shared_.v = matrix_of<const T>(call.v);
    stack_numbers();
    if (context.training && call.dropout > 0) {
      shared_.dropout_key = dropout_call_key(call, context);
      shared_.dropout_threshold = dropout_threshold(call.dropout);
      shared_.dropout_scale = static_cast<float>(1 / (1 - call.dropout));
    }
  }

  /// Sets `kept` if it is not null.
  Tensor forward(KeptResults* kept) {
    Tensor result = at::empty(call_.q.sizes(), call_.q.options());
    shared_.context = matrix_of<T>(result);
    if (kept != nullptr && has_long_rows())
      kept->row_results = at::empty({call_.q.size(0), call_.q.size(1), kRowResults}, numbers_.options());
    if (kept != nullptr) kept->has_weight.resize(schedules_.all.size());
    for (const UploadedSchedule& one : schedules_.all) {
      shared_.schedule = one.schedule;
      for_each_part(one.schedule.num_tiles, one.lists.forward_row_bytes, [&](int first, int count) {
        shared_.schedule.tiles = one.schedule.tiles + first;
        shared_.schedule.num_tiles = count;
        start(functions_.forward, {.warps = one.lists.warps}, one.lists.forward_bytes);
      });
      for (const ShortLaunch& launch : one.lists.short_launches) start(functions_.short_forward, one, launch, launch.forward_bytes);
      Tensor* const has_weight = kept == nullptr ? nullptr : &kept->has_weight[static_cast<size_t>(&one - schedules_.all.data())];
      if (has_weight != nullptr && one.lists.num_long_blocks > 0)
        *has_weight = at::empty({one.schedule.num_heads, one.lists.num_long_blocks}, call_.q.options().dtype(at::kByte));
      if (has_weight != nullptr) use_kept(*kept, *has_weight);
      for (const LongLaunch& launch : one.lists.long_launches)
        start(functions_.long_forward, one, launch, launch.forward_bytes, launch.forward_row_bytes);
    }
    if (!schedules_.flash.empty()) {
      FlashResults results = schedules_.flash.forward(flash_kernels(), call_, result);
      if (kept != nullptr) kept->flash = std::move(results);
    }
    return result;
  }

  AttentionGradients backward(const KeptResults& kept, const Tensor& of_context) {
    const bool writes_all =
        std::all_of(schedules_.all.begin(), schedules_.all.end(), [](const UploadedSchedule& one) { return one.lists.writes_every_key; });
    AttentionGradients gradients = allocate_gradients(call_, /*uncleared=*/writes_all);
    shared_.context_gradient = matrix_of<const T>(of_context);
    shared_.is_aligned = shared_.is_aligned && is_aligned(of_context);
    shared_.q_gradient = matrix_of<T>(gradients.q);
    shared_.k_gradient = matrix_of<T>(gradients.k);
    shared_.v_gradient = matrix_of<T>(gradients.v);
    const Tensor of_numbers = at::zeros(numbers_.sizes(), numbers_.options().dtype(at::kDouble));
    shared_.number_gradients = of_numbers.data_ptr<double>();
    Tensor records;
    if (has_long_rows()) {
      const auto bytes = static_cast<int64_t>(sizeof(LongRowRecord));
      records = at::empty({call_.q.size(0), call_.q.size(1), bytes}, call_.q.options().dtype(at::kByte));
      shared_.records = static_cast<LongRowRecord*>(records.data_ptr());
    }
    for (size_t i = 0; i < schedules_.all.size(); ++i) {
      use_kept(kept, kept.has_weight[i]);
      backward(schedules_.all[i]);
    }
    if (!schedules_.flash.empty()) schedules_.flash.backward(flash_kernels(), call_, kept.flash, of_context, gradients);
    for (size_t i = 0; i < call_.numbers.size(); ++i) {
      const Tensor each = of_numbers.select(2, static_cast<int64_t>(i));
      gradients.numbers.push_back((call_.numbers[i].dim() == 1 ? each.sum(0) : each).to(call_.numbers[i].options()));
    }
    return gradients;
  }

 private:
  const FlashKernels& flash_kernels() const { return *engine_for(call_.q)->flash; }

  static KernelFunctions<T> functions_of(const TypeKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) {
      return kernels.for_float;
    } else {
      return kernels.for_bf16;
    }
  }

  void backward(const UploadedSchedule& one) {
    shared_.schedule = one.schedule;
    if (one.schedule.num_chunks > 0) {
      const Tensor partials = at::zeros({2, one.schedule.num_heads, one.lists.num_partials, shared_.width}, numbers_.options());
      shared_.k_partial = partials[0].data_ptr<float>();
      shared_.v_partial = partials[1].data_ptr<float>();
      for_each_part(one.schedule.num_chunks, one.lists.backward_row_bytes, [&](int first, int count) {
        shared_.schedule.chunks = one.schedule.chunks + first;
        shared_.schedule.num_chunks = count;
        start(functions_.backward, {.warps = one.lists.warps}, one.lists.backward_bytes);
      });
    }
    for (const ShortLaunch& launch : one.lists.short_launches) start(functions_.short_backward, one, launch, launch.backward_bytes);
    for (const LongLaunch& launch : one.lists.long_launches)
      start(functions_.long_query_gradients, one, launch, launch.backward_bytes, launch.backward_row_bytes);
    if (one.schedule.num_long_keys > 0) start(functions_.long_key_gradients, {.warps = kLongWarps}, one.lists.long_keys_bytes);
  }

  bool has_long_rows() const {
    return std::any_of(schedules_.all.begin(), schedules_.all.end(),
                       [](const UploadedSchedule& one) { return !one.lists.long_sentences.empty(); });
  }
  void use_kept(const KeptResults& kept, const Tensor& has_weight) {
    shared_.row_results = kept.row_results.defined() ? kept.row_results.data_ptr<float>() : nullptr;
    shared_.has_weight = has_weight.defined() ? has_weight.data_ptr<uint8_t>() : nullptr;
  }

  /// Works on the tiles of one launch of long rows.
  void start(KernelFunction<T> function, const UploadedSchedule& one, const LongLaunch& launch, int64_t shared_bytes, int64_t row_bytes) {
    for_each_part(launch.count, row_bytes, [&](int first, int count) {
      shared_.schedule.long_tiles = one.schedule.long_tiles + launch.first + first;
      shared_.schedule.num_long_tiles = count;
      start(function, {.warps = kLongWarps}, shared_bytes);
    });
  }

  /// launch(first, count) for `count` tiles or chunks: all at once, or if their rows lie in the device's memory, so many as it has room
  /// for.
  template <class F>
  void for_each_part(int count, int64_t row_bytes, F launch) {
    shared_.row_memory = nullptr;
    shared_.row_bytes = row_bytes;
    if (count == 0) return;
    if (row_bytes == 0) return launch(0, count);
    const int64_t of_all_heads = row_bytes * shared_.schedule.num_heads;
    const auto at_once = static_cast<int>(std::clamp<int64_t>(engine_for(call_.q)->row_memory / of_all_heads, 1, count));
    const Tensor memory = at::empty({at_once * of_all_heads}, call_.q.options().dtype(at::kByte));
    shared_.row_memory = memory.data_ptr<uint8_t>();
    for (int first = 0; first < count; first += at_once) launch(first, std::min(at_once, count - first));
  }

  /// Works on the short sentences of one launch.
  void start(KernelFunction<T> function, const UploadedSchedule& one, const ShortLaunch& launch, int64_t shared_bytes) {
    shared_.schedule.short_sentences = one.schedule.short_sentences + launch.first;
    shared_.schedule.num_short = launch.count;
    start(function, {.warps = launch.warps, .width = launch.width}, shared_bytes);
  }

  void start(KernelFunction<T> function, Launch launch, int64_t shared_bytes) const {
    launch.shared_bytes = static_cast<int>(shared_bytes);
    on_gpu(call_.q.device(), [&](void* stream) {
      launch.stream = stream;
      return function(call_.type->options(), shared_, launch);
    });
  }

  /// numbers_ [Tq, H, numbers].
  void stack_numbers() {
    const auto options = call_.q.options().dtype(at::kFloat);
    std::vector<Tensor> columns;
    for (const Tensor& number : call_.numbers) columns.push_back(number.expand({call_.q.size(0), call_.q.size(1)}));
    numbers_ = columns.empty() ? at::empty({call_.q.size(0), call_.q.size(1), 0}, options) : at::stack(columns, 2).to(options);
    shared_.num_numbers = static_cast<int>(columns.size());
    shared_.numbers = numbers_.data_ptr<float>();
  }

  const AttentionCall& call_;
  const BlockSchedules& schedules_;
  const KernelFunctions<T> functions_;
  KernelCall<T> shared_;
  Tensor numbers_;
};

bool is_bf16(const AttentionCall& call) {
  return call.q.scalar_type() == at::kBFloat16;
}

/// Returns true if there are kernels for the call's short sentences, and for its long ones.
bool has_short_and_long_rows(const AttentionCall& call) {
  const TypeKernels& kernels = *kernels_for(call);
  return engine_for(call.q)->takes_short_rows &&
         (is_bf16(call) ? kernels.for_bf16.short_forward != nullptr : kernels.for_float.short_forward != nullptr);
}

/// Shows the probe the weights of the CPU's core, in float, from the same inputs: kernels keep none.
void show_weights(AttentionCall call, const ForwardContext& context) {
  const auto here = [](Tensor& tensor) { tensor = tensor.to(at::kCPU, at::kFloat); };
  for (Tensor* tensor : {&call.q, &call.k, &call.v}) here(*tensor);
  for (Tensor& number : call.numbers) here(number);
  run_core(call, context);
}

}  // namespace

void emulate(const Engine* engine) {
  emulated = engine;
}

const Engine* engine_for(const Tensor& tensor) {
#if LACUNA_CUDA
  static const Engine gpu = {all_gpu_kernels(), gpu_shared_bytes, /*takes_short_rows=*/true, &libtorch_flash()};
  if (tensor.is_cuda()) return &gpu;
#endif
  return tensor.is_cpu() ? emulated : nullptr;
}

const TypeKernels* kernels_of(const Engine& engine, const AttentionType& type) {
  const auto found = std::find_if(engine.kernels.begin(), engine.kernels.end(),
                                  [&](const TypeKernels& kernels) { return std::string(type.entry().name) == kernels.type; });
  return found == engine.kernels.end() ? nullptr : &*found;
}

bool has_kernels(const AttentionCall& call) {
  const auto type = call.q.scalar_type();
  return (type == at::kFloat || type == at::kBFloat16) && call.k.scalar_type() == type && call.v.scalar_type() == type &&
         call.q.size(2) == call.v.size(2) && call.numbers.size() <= kMaxNumbers && kernels_for(call) != nullptr;
}

namespace {

/// Everything that schedules depend on.
struct ScheduleKey {
  std::vector<int32_t> offsets;
  std::vector<int64_t> ids;
  KeyRange keys;
  std::vector<int32_t> first_position;
  std::string patterns;
  int64_t heads, key_rows;
  bool causal, rows_alike;
  MemoryRules rules;
  at::Device device;

  bool operator==(const ScheduleKey&) const = default;
};

ScheduleKey origin_of(const AttentionCall& call, const ForwardContext& context) {
  const types::TypeEntry& entry = call.type->entry();
  const MemoryRules rules = {.d_head = static_cast<int>(call.q.size(2)),
                             .needs_scores = entry.needs_scores(call.type->options()),
                             .uses_positions = entry.info.uses_positions,
                             .in_bf16 = is_bf16(call),
                             .wants_gradients = at::GradMode::is_enabled(),
                             .limit = engine_for(call.q)->shared_bytes(),
                             .has_short_rows = has_short_and_long_rows(call),
                             .has_long_rows = has_short_and_long_rows(call),
                             .has_flash = engine_for(call.q)->flash != nullptr && flash_takes(call, context) && is_aligned(call.q) &&
                                          is_aligned(call.k) && is_aligned(call.v)};
  return {.offsets = call.queries->offsets(),
          .ids = call.queries->ids(),
          .keys = *call.keys,
          .first_position = call.first_position,
          .patterns = call.type->description().find("pattern")->to_line(),
          .heads = call.q.size(1),
          .key_rows = call.k.size(0),
          .causal = call.causal,
          .rows_alike = call.rows_alike,
          .rules = rules,
          .device = call.q.device()};
}

/// Returns schedules that can be used once the upload is sent.
std::shared_ptr<const BlockSchedules> new_schedules(const AttentionCall& call, const MemoryRules& rules, Upload& upload) {
  auto schedules = std::make_shared<BlockSchedules>();
  for (ScheduleLists& lists : make_schedules(call, rules)) schedules->all.push_back({std::move(lists), {}, {}});
  const std::vector<int32_t>& flash = schedules->all.front().lists.flash_sentences;  // of a call with one pattern
  if (!flash.empty()) schedules->flash.take(call, flash, upload);
  for (UploadedSchedule& one : schedules->all) add_schedule(one, call, rules.wants_gradients, upload);
  upload.hold(schedules);
  return schedules;
}

/// Returns the schedules of a call: those of the last few, or new ones, which can be used once the upload is sent.
std::shared_ptr<const BlockSchedules> schedule(const AttentionCall& call, const ForwardContext& context, Upload& upload) {
  struct Made {
    ScheduleKey origin;
    std::shared_ptr<const BlockSchedules> schedules;
  };
  thread_local RecentValues<Made> made;  // the layers of a model ask for the same few, one after the other
  const ScheduleKey origin = origin_of(call, context);
  return made
      .get([&](const Made& one) { return one.origin == origin && one.schedules->are_sent(); },
           [&] {
             return Made{origin, new_schedules(call, origin.rules, upload)};
           })
      .schedules;
}

}  // namespace

std::shared_ptr<const BlockSchedules> schedule(const AttentionCall& call, const ForwardContext& context) {
  const c10::DeviceGuard guard(call.q.device());
  Upload upload;
  auto schedules = schedule(call, context, upload);
  if (!schedules->are_sent()) upload.send(call.q.device());
  return schedules;
}

void prepare(const AttentionCall& call, const ForwardContext& context, Upload& upload) {
  const c10::DeviceGuard guard(call.q.device());
  schedule(call, context, upload);
}

Tensor run(const AttentionCall& call, const ForwardContext& context, const BlockSchedules& schedules, KeptResults* kept) {
  const c10::DeviceGuard guard(call.q.device());
  if (is_probed(call, context)) show_weights(call, context);
  return is_bf16(call) ? GpuRun<Bf16>(call, context, schedules).forward(kept) : GpuRun<float>(call, context, schedules).forward(kept);
}

AttentionGradients run_backward(const AttentionCall& call, const ForwardContext& context, const BlockSchedules& schedules,
                                const KeptResults& kept, const Tensor& context_gradient) {
  const c10::DeviceGuard guard(call.q.device());
  const Tensor gradient = context_gradient.contiguous();
  return is_bf16(call) ? GpuRun<Bf16>(call, context, schedules).backward(kept, gradient)
                       : GpuRun<float>(call, context, schedules).backward(kept, gradient);
}

}  // namespace lacuna::cuda

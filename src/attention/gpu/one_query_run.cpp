#include "attention/gpu/one_query_run.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "attention/gpu/matrices.h"
#include "attention/gpu/one_query_call.h"
#include "attention/gpu/run.h"
#include "attention/registry.h"
#include "base/device.h"

namespace lacuna::cuda {
namespace {

/// The shared memory of a block, so that several fit into a multiprocessor's, unless one row needs more.
constexpr int64_t kBytesOfBlock = 48 << 10;
/// The warps of a block whose rows lie in the device's memory.
constexpr int kWarpsOfLongRows = 4;

template <class T>
class OneQueryRun {
 public:
  explicit OneQueryRun(const OneQueryStep& step) : step_(step) {
    call_.num_rows = static_cast<int>(step.q.size(0));
    call_.num_heads = static_cast<int>(step.q.size(1));
    call_.d_head = static_cast<int>(step.q.size(2));
    call_.scale = static_cast<float>(step.scale);
    call_.uses_positions = step.type->entry().info.uses_positions;
    call_.is_aligned = is_aligned(step.k) && is_aligned(step.v);
    call_.num_numbers = static_cast<int>(step.numbers.size());
    for (size_t i = 0; i < step.numbers.size(); ++i) {
      const Tensor& number = step.numbers[i];
      call_.numbers[i] = {number.const_data_ptr<float>(), number.dim() == 1 ? 0 : number.stride(0), number.stride(-1)};
    }
    call_.q = matrix_of<const T>(step.q);
    call_.k = matrix_of<T>(step.k);
    call_.v = matrix_of<T>(step.v);
    if (step.new_k.defined()) {
      call_.new_k = matrix_of<const T>(step.new_k);
      call_.new_v = matrix_of<const T>(step.new_v);
    }
    call_.num_keys = step.num_keys.const_data_ptr<int32_t>();
    if (step.slots.defined()) {
      call_.slots = step.slots.const_data_ptr<int32_t>();
      call_.slot_stride = step.slots.stride(0);
    } else {
      call_.first_key = step.first_key.const_data_ptr<int32_t>();
    }
    if (step.patterns != nullptr && step.patterns->positions > 0) {
      call_.segments = reinterpret_cast<const KeySegment*>(step.patterns->segments.const_data_ptr<int32_t>());
      call_.first_segment = step.patterns->first.const_data_ptr<int32_t>();
      call_.num_positions = static_cast<int>(step.patterns->positions);
      call_.has_patterns_of_heads = step.patterns->has_patterns_of_heads;
    }
    if (step.rotation != nullptr) {
      call_.cosines = step.rotation->cosines.const_data_ptr<float>();
      call_.sines = step.rotation->sines.const_data_ptr<float>();
      call_.turns_neighbors = step.rotation->is_interleaved;
    }
    call_.row_size = static_cast<int>(step.most_keys);
  }

  Tensor run() {
    Tensor result = at::empty(step_.q.sizes(), step_.q.options());
    call_.context = matrix_of<T>(result);
    const Engine& engine = *engine_for(step_.q);
    const int64_t limit = engine.shared_bytes();
    Launch launch = {.warps = kQueryWarps};
    while (launch.warps > 1 && launch.warps * bytes_of_warp(true) > std::min(kBytesOfBlock, limit)) launch.warps /= 2;
    const bool rows_are_shared = launch.warps * bytes_of_warp(true) <= limit;
    if (!rows_are_shared) launch.warps = kWarpsOfLongRows;
    launch.shared_bytes = static_cast<int>(launch.warps * bytes_of_warp(rows_are_shared));
    int64_t blocks = (step_.q.size(0) * step_.q.size(1) + launch.warps - 1) / launch.warps;
    Tensor row_memory;
    if (!rows_are_shared) {
      const int64_t of_block = kWarpsOfLongRows * OneQueryMemory::row_bytes(call_.row_size, call_.uses_positions);
      blocks = std::clamp<int64_t>(engine.row_memory / of_block, 1, blocks);
      row_memory = at::empty({blocks * of_block}, step_.q.options().dtype(at::kByte));
      call_.row_memory = row_memory.data_ptr<uint8_t>();
    }
    const auto function = functions_of(*kernels_of(engine, *step_.type)).one_query;
    on_gpu(step_.q.device(), [&](void* stream) {
      launch.stream = stream;
      return function(step_.type->options(), call_, static_cast<int>(blocks), launch);
    });
    return result;
  }

  static KernelFunctions<T> functions_of(const TypeKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) {
      return kernels.for_float;
    } else {
      return kernels.for_bf16;
    }
  }

 private:
  int64_t bytes_of_warp(bool rows_are_shared) const {
    return OneQueryMemory::shared_bytes(call_.d_head, call_.row_size, call_.uses_positions, rows_are_shared);
  }

  const OneQueryStep& step_;
  OneQueryCall<T> call_ = {};
};

}  // namespace

PatternTable pattern_table(const AttentionType& type, int64_t num_heads, int64_t positions, at::Device device) {
  PatternTable table;
  table.has_patterns_of_heads = !type.has_one_pattern();
  const int64_t patterns = type.has_one_pattern() ? 1 : num_heads;
  std::vector<KeySegment> segments;
  std::vector<int32_t> first = {0};
  bool shows_all = true;
  for (int64_t head = 0; head < patterns; ++head) {
    shows_all = shows_all && type.pattern(head).shows_every_key();
    for (int64_t i = 0; i < positions; ++i) {
      const auto position = static_cast<int32_t>(i);
      type.pattern(head).append_visible(position, position + 1, segments);
      first.push_back(static_cast<int32_t>(segments.size()));
    }
  }
  if (shows_all) return {};
  static_assert(sizeof(KeySegment) == 3 * sizeof(int32_t));
  std::vector<int32_t> numbers;
  for (const KeySegment& segment : segments) numbers.insert(numbers.end(), {segment.begin, segment.count, segment.stride});
  table.segments = tensor_of(numbers, device);
  table.first = tensor_of(first, device);
  table.positions = positions;
  return table;
}

bool takes_one_query(const AttentionType& type, const Tensor& q) {
  const Engine* const engine = engine_for(q);
  if (engine == nullptr || !type.is_row_map() || type.num_numbers() > kMaxNumbers) return false;
  if (q.scalar_type() != at::kFloat && q.scalar_type() != at::kBFloat16) return false;
  return kernels_of(*engine, type) != nullptr;
}

Tensor run_one_query(const OneQueryStep& step) {
  const c10::DeviceGuard guard(step.q.device());
  return step.q.scalar_type() == at::kBFloat16 ? OneQueryRun<Bf16>(step).run() : OneQueryRun<float>(step).run();
}

}  // namespace lacuna::cuda

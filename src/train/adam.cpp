#include "train/adam.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/macros.h"
#include "kernels/parallel.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

/// At most kChunk elements of one parameter: from `begin` of the buffers and `offset` of the gradient on.
struct Chunk {
  const at::Tensor* gradient;
  int64_t begin, offset, count;
};

std::vector<Chunk> chunks_of(const PlacedGradients& gradients) {
  std::vector<Chunk> chunks;
  for (const PlacedGradient& placed : gradients)
    for (int64_t offset = 0; offset < placed.count; offset += kChunk)
      chunks.push_back({&placed.gradient, placed.begin + offset, offset, std::min(kChunk, placed.count - offset)});
  return chunks;
}

/// The chunk's gradient.
template <class T>
const T* gradient_of(const Chunk& chunk) {
  static const std::vector<T> zeros(kChunk);
  return chunk.gradient->defined() ? chunk.gradient->const_data_ptr<T>() + chunk.offset : zeros.data();
}

template <class T>
double chunk_sum_of_squares(const T* values, int64_t count) {
  constexpr int kLanes = 8;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += static_cast<double>(values[i + lane]) * static_cast<double>(values[i + lane]);
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <class T, bool kAverages>
void update_chunk(const AdamPointers<T>& pointers, AdamNumbers<T> numbers, int64_t count) {  // by value: no write may change them
  LACUNA_NO_OVERLAP
  for (int64_t i = 0; i < count; ++i) update_element<T, kAverages>(pointers, numbers, i);
}

template <class T>
void update_on_cpu(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step) {
  const auto data = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<T>() : nullptr; };
  T *const values = data(buffers.values), *const first = data(buffers.first_moment), *const second = data(buffers.second_moment),
           *const average = data(buffers.average);
  const std::vector<Chunk> chunks = chunks_of(gradients);
  const AdamNumbers<T> numbers(step);
  for_parts(static_cast<int64_t>(chunks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Chunk& chunk = chunks[static_cast<size_t>(i)];
      AdamPointers<T> p = {values + chunk.begin, first + chunk.begin, second + chunk.begin, nullptr, gradient_of<T>(chunk)};
      if (average == nullptr) {
        update_chunk<T, false>(p, numbers, chunk.count);
      } else {
        p.average = average + chunk.begin;
        update_chunk<T, true>(p, numbers, chunk.count);
      }
    }
  });
}

const AdamKernels* emulated = nullptr;

/// Returns the kernels for a device; null = there are none.
const AdamKernels* kernels_for(at::Device device) {
#if LACUNA_CUDA
  if (device.is_cuda()) return &compiled_adam_kernels();
#endif
  return device.is_cpu() ? emulated : nullptr;
}

bool are_on_cpu(const PlacedGradients& gradients) {
  return std::all_of(gradients.begin(), gradients.end(),
                     [](const PlacedGradient& placed) { return !placed.gradient.defined() || !is_on_gpu(placed.gradient); });
}

std::vector<at::Tensor> defined(const PlacedGradients& gradients) {
  std::vector<at::Tensor> all;
  for (const PlacedGradient& placed : gradients)
    if (placed.gradient.defined()) all.push_back(placed.gradient);
  return all;
}

/// On the device; undefined if there are none.
at::Tensor sum_of_squares_by_aten(const PlacedGradients& gradients) {
  const std::vector<at::Tensor> all = defined(gradients);
  return all.empty() ? at::Tensor() : at::stack(at::_foreach_norm(all, 2, at::kDouble)).square().sum();
}

/// From the first gradient's place in the buffers to the last one's end, with zeros where there is none.
at::Tensor flat_gradients(const at::Tensor& values, const PlacedGradients& gradients) {
  std::vector<at::Tensor> parts;
  int64_t end = gradients.front().begin;
  const auto add_zeros = [&](int64_t count) {
    if (count > 0) parts.push_back(at::zeros({count}, values.options()));
  };
  for (const PlacedGradient& placed : gradients) {
    add_zeros(placed.begin - end);
    if (placed.gradient.defined()) {
      parts.push_back(placed.gradient.flatten());
    } else {
      add_zeros(placed.count);
    }
    end = placed.begin + placed.count;
  }
  return at::cat(parts);
}

/// The part of a buffer that the gradients have places in.
at::Tensor part_of(const at::Tensor& buffer, const PlacedGradients& gradients) {
  return buffer.slice(0, gradients.front().begin, gradients.back().begin + gradients.back().count);
}

/// By `decision`, or if that is null by `step`.
void update_on_gpu(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step, const UpdateDecision* decision) {
  if (gradients.empty()) return;
  const at::Tensor flat = flat_gradients(buffers.values, gradients);
  const auto data = [&](const at::Tensor& buffer) {
    return buffer.defined() ? part_of(buffer, gradients).mutable_data_ptr<float>() : nullptr;
  };
  const AdamPointers<float> pointers = {.value = data(buffers.values),
                                        .first = data(buffers.first_moment),
                                        .second = data(buffers.second_moment),
                                        .average = data(buffers.average),
                                        .gradient = flat.const_data_ptr<float>(),
                                        .rounded = buffers.rounded.defined() ? bf16_bits_of(part_of(buffers.rounded, gradients)) : nullptr};
  on_gpu(flat.device(), [&](void* stream) { return kernels_for(flat.device())->update(pointers, step, decision, flat.numel(), stream); });
}

}  // namespace

void emulate_adam(const AdamKernels* kernels) {
  emulated = kernels;
}

bool has_adam_kernels(const at::Tensor& buffer) {
  return buffer.scalar_type() == at::kFloat && kernels_for(buffer.device()) != nullptr;
}

at::Tensor device_sum_of_squares(const PlacedGradients& gradients, const at::Tensor& values) {
  const at::Tensor sum = sum_of_squares_by_aten(gradients);
  return sum.defined() ? sum : at::zeros({}, values.options().dtype(at::kDouble));
}

void decide_update(const DecisionArgs& args, at::Device device) {
  on_gpu(device, [&](void* stream) { return kernels_for(device)->decide(args, stream); });
}

void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const UpdateDecision* decision) {
  update_on_gpu(buffers, gradients, {}, decision);
}

std::vector<double> squares_of_chunks(const PlacedGradients& gradients) {
  if (!are_on_cpu(gradients)) {
    const at::Tensor sum = sum_of_squares_by_aten(gradients);  // the device is waited for once
    return {sum.defined() ? sum.item<double>() : 0};
  }
  const std::vector<Chunk> chunks = chunks_of(gradients);
  std::vector<double> partial(chunks.size());
  for_parts(static_cast<int64_t>(chunks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Chunk& chunk = chunks[static_cast<size_t>(i)];
      if (!chunk.gradient->defined()) continue;
      partial[static_cast<size_t>(i)] = chunk.gradient->scalar_type() == at::kDouble
                                            ? chunk_sum_of_squares(gradient_of<double>(chunk), chunk.count)
                                            : chunk_sum_of_squares(gradient_of<float>(chunk), chunk.count);
    }
  });
  return partial;
}

double sum_of_squares(const PlacedGradients& gradients) {
  double sum = 0;
  for (const double squares : squares_of_chunks(gradients)) sum += squares;
  return sum;
}

void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step) {
  const at::ScalarType type = buffers.values.scalar_type();
  if (has_adam_kernels(buffers.values)) return update_on_gpu(buffers, gradients, step, nullptr);
  if (buffers.values.is_cpu() && type == at::kFloat) return update_on_cpu<float>(buffers, gradients, step);
  if (buffers.values.is_cpu() && type == at::kDouble) return update_on_cpu<double>(buffers, gradients, step);
  adam_update_reference(buffers, gradients, step);
}

void adam_update_reference(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step) {
  if (gradients.empty()) return;
  const at::NoGradGuard no_grad;
  const auto part = [&](const at::Tensor& buffer) { return part_of(buffer, gradients); };
  const at::Tensor values = part(buffers.values), first = part(buffers.first_moment), second = part(buffers.second_moment);
  const at::Tensor gradient = flat_gradients(buffers.values, gradients).mul_(step.gradient_scale).add_(values, step.l2);
  first.mul_(step.beta1).add_(gradient, 1 - step.beta1);
  second.mul_(step.beta2).addcmul_(gradient, gradient, 1 - step.beta2);
  const at::Tensor denominator = (second / step.bias2).sqrt_().add_(step.epsilon);
  values.mul_(step.shrink).addcdiv_(first, denominator, -step.lr / step.bias1);
  if (buffers.average.defined()) part(buffers.average).lerp_(values, step.average_rate);
}

}  // namespace lacuna

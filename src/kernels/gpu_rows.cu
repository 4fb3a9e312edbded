#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "base/cuda_message.h"
#include "kernels/dropout_factors.h"
#include "kernels/gpu_rows.h"

namespace lacuna::gpu {
namespace {

constexpr int kLanes = 32;
constexpr unsigned kAll = ~0u;

__device__ float warp_sum(float x) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(kAll, x, distance);
  return x;
}

/// Returns a number as it is stored: unchanged, or rounded to bf16.
template <class Stored>
__device__ Stored stored(float x) {
  if constexpr (std::is_same_v<Stored, float>) {
    return x;
  } else {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  }
}
__device__ float loaded(float x) {
  return x;
}
__device__ float loaded(uint16_t x) {
  return __bfloat162float(__ushort_as_bfloat16(x));
}

/// Launches a kernel of `blocks` blocks.
template <class... Parameters, class... Arguments>
const char* start(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, void* stream, const Arguments&... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return nullptr;
  kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  return message_of(cudaGetLastError());
}

unsigned blocks_of(int64_t work, int64_t of_block) {
  return static_cast<unsigned>((work + of_block - 1) / of_block);
}

// --- a warp for each row ---

constexpr int kWarps = 4;

/// A warp's row: a lane has the same elements in every loop, so that it may read what it wrote.
struct WarpRow {
  int64_t row;
  FeatureBlocks features;
  int lane;

  __device__ explicit WarpRow(int64_t columns)
      : row(static_cast<int64_t>(blockIdx.x) * kWarps + static_cast<int64_t>(threadIdx.y)),
        features{columns},
        lane(static_cast<int>(threadIdx.x)) {}

  template <class F>
  __device__ void for_each(F f) const {
    for (int64_t block = lane; block < features.count(); block += kLanes) features.for_each(block, [&](int64_t i, int64_t) { f(i); });
  }
  /// Calls f(i, factor) for each element: 0, or the factor of a kept element.
  template <class F>
  __device__ void for_each_dropped(const DropoutRows& dropout, F f) const {
    const DroppedRow dropped(dropout, row);
    for (int64_t block = lane; block < features.count(); block += kLanes) {
      const PhiloxBlock bits = dropped.draw(block);
      features.for_each(block, [&](int64_t i, int64_t half) { f(i, dropped.factor<float>(bits, half)); });
    }
  }
};

template <class Args>
const char* start_for_rows(void (*kernel)(Args, int64_t), const Args& args, int64_t rows, void* stream) {
  return start(kernel, blocks_of(rows, kWarps), dim3(kLanes, kWarps), stream, args, rows);
}

template <class Normed>
__global__ void __launch_bounds__(kLanes* kWarps) normalize(const ResidualNormForward<float, Normed> a, int64_t rows) {
  const WarpRow warp(a.columns);
  if (warp.row >= rows) return;
  const int64_t at = warp.row * a.columns;
  const float *x = a.residual + at, *z = x;
  float total = 0;
  if (a.output != nullptr) {
    const float* y = a.output + (warp.row - a.first_row) * a.columns;
    float* sum = a.sum + at;
    warp.for_each_dropped(a.dropout, [&](int64_t i, float factor) {
      sum[i] = x[i] + factor * y[i];
      total += sum[i];
    });
    z = sum;
  } else {
    warp.for_each([&](int64_t i) { total += x[i]; });
  }
  const auto n = static_cast<float>(a.columns);
  const float mean = a.is_rms ? 0.f : warp_sum(total) / n;
  float squares = 0;
  warp.for_each([&](int64_t i) { squares += (z[i] - mean) * (z[i] - mean); });
  const float inverse = 1 / sqrtf(warp_sum(squares) / n + a.epsilon);
  Normed* normed = a.normed + at;
  warp.for_each(
      [&](int64_t i) { normed[i] = stored<Normed>((z[i] - mean) * inverse * a.gain[i] + (a.bias != nullptr ? a.bias[i] : 0.f)); });
  if (warp.lane != 0) return;
  if (a.mean != nullptr) a.mean[warp.row] = mean;
  if (a.inverse_deviation != nullptr) a.inverse_deviation[warp.row] = inverse;
}

/// Does what residual_norm_backward of row_kernels.cpp does, except for the sums over rows.
template <class Normed, class Output>
__global__ void __launch_bounds__(kLanes* kWarps) denormalize(const ResidualNormBackward<float, Normed, Output> a, int64_t rows) {
  const WarpRow warp(a.columns);
  if (warp.row >= rows) return;
  const int64_t at = warp.row * a.columns;
  const float* z = a.sum + at;
  const Normed* dy = a.normed_gradient + at;
  const float mean = a.mean[warp.row], inverse = a.inverse_deviation[warp.row];
  float sum_g = 0, sum_gh = 0;
  warp.for_each([&](int64_t i) {
    const float g = loaded(dy[i]) * a.gain[i];
    sum_g += g;
    sum_gh += g * (z[i] - mean) * inverse;
  });
  const auto n = static_cast<float>(a.columns);
  const float mean_g = a.is_rms ? 0.f : warp_sum(sum_g) / n, mean_gh = warp_sum(sum_gh) / n;
  warp.for_each_dropped(a.dropout, [&](int64_t i, float factor) {
    const float dz = a.sum_gradient != nullptr ? a.sum_gradient[at + i] : 0.f;
    const float dx = dz + inverse * (loaded(dy[i]) * a.gain[i] - mean_g - (z[i] - mean) * inverse * mean_gh);
    a.residual_gradient[at + i] = dx;
    if (a.output_gradient != nullptr) a.output_gradient[at + i] = stored<Output>(dx * factor);
  });
}

__device__ float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

/// An element of gated_rms: x, its gate, and how far that is open: sigmoid(gate x). 0 and 1 where there is no gate.
struct GatedElement {
  float x, gate, open;
};

template <class Stored>
__device__ GatedElement gated_element(const GatedRmsRows<float, Stored>& a, int64_t at, int64_t column) {
  const float x = loaded(a.input[at]);
  if (a.gate == nullptr) return {x, 0, 1};
  return {x, a.gate[column], sigmoid(a.gate[column] * x)};
}

template <class Stored>
__global__ void __launch_bounds__(kLanes* kWarps) normalize_gated(const GatedRmsRows<float, Stored> a, int64_t rows) {
  const WarpRow warp(a.columns);
  if (warp.row >= rows) return;
  const int64_t at = warp.row * a.columns;
  float squares = 0;
  warp.for_each([&](int64_t i) { squares += loaded(a.input[at + i]) * loaded(a.input[at + i]); });
  const float inverse = 1 / sqrtf(warp_sum(squares) / static_cast<float>(a.columns) + a.epsilon);
  warp.for_each([&](int64_t i) {
    const GatedElement e = gated_element(a, at + i, i);
    a.result[at + i] = stored<Stored>(e.x * inverse * a.gain[i] * e.open);
  });
}

/// Does what gated_rms_backward of row_kernels.cpp does, except for the sums over rows, which need a.inverse_rms.
template <class Stored>
__global__ void __launch_bounds__(kLanes* kWarps) denormalize_gated(const GatedRmsRows<float, Stored> a, int64_t rows) {
  const WarpRow warp(a.columns);
  if (warp.row >= rows) return;
  const int64_t at = warp.row * a.columns;
  const auto g_of = [&](const GatedElement& e, int64_t i) { return loaded(a.gradient[at + i]) * a.gain[i] * e.open; };
  float squares = 0, sum_gx = 0;
  warp.for_each([&](int64_t i) {
    const GatedElement e = gated_element(a, at + i, i);
    squares += e.x * e.x;
    sum_gx += g_of(e, i) * e.x;
  });
  const auto n = static_cast<float>(a.columns);
  const float inverse = 1 / sqrtf(warp_sum(squares) / n + a.epsilon), mean_gh = warp_sum(sum_gx) * inverse / n;
  warp.for_each([&](int64_t i) {
    const GatedElement e = gated_element(a, at + i, i);
    const float g = g_of(e, i), h = e.x * inverse;
    a.input_gradient[at + i] = stored<Stored>((g - h * mean_gh) * inverse + g * h * (1 - e.open) * e.gate);
  });
  if (warp.lane == 0) a.inverse_rms[warp.row] = inverse;
}

// --- a thread for each block of features ---

constexpr int kThreads = 128;

/// Calls f(i, factor) for the elements [T, columns] of this thread: 0, or the factor of a kept element.
template <class F>
__device__ void for_own_elements(const DropoutRows& dropout, int64_t columns, int64_t rows, F f) {
  const FeatureBlocks features{columns};
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
  const int64_t row = thread / features.count(), block = thread % features.count();
  if (row >= rows) return;
  const DroppedRow dropped(dropout, row);
  const PhiloxBlock bits = dropped.draw(block);
  features.for_each(block, [&](int64_t i, int64_t half) { f(row * columns + i, dropped.factor<float>(bits, half)); });
}

template <class Args>
const char* start_for_elements(void (*kernel)(Args, int64_t), const Args& args, int64_t rows, void* stream) {
  return start(kernel, blocks_of(rows * FeatureBlocks{args.columns}.count(), kThreads), kThreads, stream, args, rows);
}

__device__ float gelu(float x) {
  constexpr float kLowest = -3.402823466e38f;
  x = x < kLowest ? kLowest : x;  // -infinity times 0 would be NaN; NaN stays
  return x * normcdff(x);
}
__device__ float gelu_slope(float x) {
  constexpr float kDensityAt0 = .398942280f;  // of the normal distribution
  constexpr float kFar = 40;                  // from there on 0 and 1, to rounding
  x = x < -kFar ? -kFar : x > kFar ? kFar : x;
  return normcdff(x) + x * kDensityAt0 * expf(-.5f * x * x);
}
__device__ float relu(float x) {
  return x < 0 ? 0.f : x;  // NaN stays
}
__device__ float swish(float x) {
  constexpr float kFar = 87;
  x = x < -kFar ? -kFar : x;  // -infinity times 0 would be NaN; NaN stays
  return x / (1 + expf(-x));
}
__device__ float swish_slope(float x) {
  constexpr float kFar = 40;  // from there on 0 and 1, to rounding
  x = x < -kFar ? -kFar : x > kFar ? kFar : x;
  return (1 + x / (1 + expf(x))) / (1 + expf(-x));
}

__device__ float activated(Activation activation, float x) {
  return activation == Activation::kRelu ? relu(x) : activation == Activation::kGelu ? gelu(x) : swish(x);
}

__global__ void __launch_bounds__(kThreads) activate(const ActivationRows<float> a, int64_t rows) {
  for_own_elements(a.dropout, a.columns, rows,
                   [&](int64_t i, float factor) { a.result[i] = factor * activated(a.activation, a.input[i]); });
}

__global__ void __launch_bounds__(kThreads) deactivate(const ActivationRows<float> a, int64_t rows) {
  const float scale = a.dropout.threshold > 0 ? static_cast<float>(a.dropout.scale) : 1.f;
  const bool is_relu = a.activation == Activation::kRelu, is_gelu = a.activation == Activation::kGelu;
  for_own_elements(is_relu ? DropoutRows() : a.dropout, a.columns, rows, [&](int64_t i, float factor) {
    if (is_relu) {  // the result is 0 or -0 where the unit was inactive or dropped, only there; NaN lets the gradient pass
      a.input_gradient[i] = a.result[i] <= 0 ? 0.f : a.gradient[i] * scale;
    } else {
      const float slope = is_gelu ? gelu_slope(a.input[i]) : swish_slope(a.input[i]);
      a.input_gradient[i] = a.gradient[i] * factor * slope;
    }
  });
}

__global__ void __launch_bounds__(kThreads) drop_all(const DropRows<float> a, int64_t rows) {
  for_own_elements(a.dropout, a.columns, rows, [&](int64_t i, float factor) { a.result[i] = factor * a.input[i]; });
}

// --- sums over rows ---

constexpr int kSummers = 8;

/// Sets sums[i] to the sums over kRowsPerSum rows of what value(row, column, parts) adds to parts[i]: a block of
/// threads for these rows and kLanes columns. Each of kSummers sums some of the rows; then these sums are added up in
/// order. Sums that are null are not wanted.
template <int kSums, class F>
__device__ void sum_rows(int64_t rows, int64_t columns, float* const (&sums)[kSums], F value) {
  __shared__ float shared[kSums][kSummers][kLanes];
  const int lane = static_cast<int>(threadIdx.x), summer = static_cast<int>(threadIdx.y);
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kLanes + lane, first = static_cast<int64_t>(blockIdx.x) * kRowsPerSum;
  const int64_t end = first + kRowsPerSum < rows ? first + kRowsPerSum : rows;
  float parts[kSums] = {};
  if (column < columns)
    for (int64_t row = first + summer; row < end; row += kSummers) value(row, column, parts);
  for (int i = 0; i < kSums; ++i) shared[i][summer][lane] = parts[i];
  __syncthreads();
  if (summer >= kSums || column >= columns || sums[summer] == nullptr) return;
  float sum = 0;
  for (int s = 0; s < kSummers; ++s) sum += shared[summer][s][lane];
  sums[summer][static_cast<int64_t>(blockIdx.x) * columns + column] = sum;
}

template <class Args>
const char* start_for_sums(void (*kernel)(Args, int64_t), const Args& args, int64_t rows, void* stream) {
  return start(kernel, dim3(blocks_of(rows, kRowsPerSum), blocks_of(args.columns, kLanes)), dim3(kLanes, kSummers), stream, args, rows);
}

template <class Normed, class Output>
__global__ void __launch_bounds__(kLanes* kSummers) sum_norm_gradients(const ResidualNormBackward<float, Normed, Output> a, int64_t rows) {
  sum_rows<2>(rows, a.columns, {a.gain_sums, a.bias_sums}, [&](int64_t row, int64_t column, float* parts) {
    const int64_t i = row * a.columns + column;
    const float dy = loaded(a.normed_gradient[i]);
    parts[0] += dy * (a.sum[i] - a.mean[row]) * a.inverse_deviation[row];
    parts[1] += dy;
  });
}

template <class Stored>
__global__ void __launch_bounds__(kLanes* kSummers) sum_gated_gradients(const GatedRmsRows<float, Stored> a, int64_t rows) {
  sum_rows<2>(rows, a.columns, {a.gain_sums, a.gate_sums}, [&](int64_t row, int64_t column, float* parts) {
    const int64_t i = row * a.columns + column;
    const GatedElement e = gated_element(a, i, column);
    const float part = loaded(a.gradient[i]) * e.x * a.inverse_rms[row] * e.open;
    parts[0] += part;
    parts[1] += part * a.gain[column] * (1 - e.open) * e.x;
  });
}

__global__ void __launch_bounds__(kLanes* kSummers) round_and_sum(const RoundedRows<float> a, int64_t rows) {
  sum_rows<1>(rows, a.columns, {a.sums}, [&](int64_t row, int64_t column, float* parts) {
    const int64_t i = row * a.columns + column;
    a.rounded[i] = stored<uint16_t>(a.input[i]);
    parts[0] += a.input[i];
  });
}

// --- a block for each row ---

constexpr int kThreadsOfRow = 256;

/// Reduces by join(a, b) over all threads of a block, always in the same order; the result is on every thread. `shared`
/// [warps] is free afterwards.
template <class X, class Join>
__device__ X joined(X x, X* shared, Join join) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) x = join(x, X::shuffled(x, distance));
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  if (threadIdx.x % kLanes == 0) shared[warp] = x;
  __syncthreads();
  X all = shared[0];
  for (int i = 1; i < kThreadsOfRow / kLanes; ++i) all = join(all, shared[i]);
  __syncthreads();
  return all;
}

/// The largest of some logits, the first of several alike, and the sum of them all.
struct Top {
  float logit, total;
  int64_t place;

  __device__ static Top shuffled(const Top& x, int distance) {
    return {__shfl_xor_sync(kAll, x.logit, distance), __shfl_xor_sync(kAll, x.total, distance), __shfl_xor_sync(kAll, x.place, distance)};
  }
  __device__ static Top join(const Top& a, const Top& b) {
    const bool first = a.logit > b.logit || (a.logit == b.logit && a.place < b.place);
    return {first ? a.logit : b.logit, a.total + b.total, first ? a.place : b.place};
  }
};

struct Sum {
  float value;
  __device__ static Sum shuffled(const Sum& x, int distance) { return {__shfl_xor_sync(kAll, x.value, distance)}; }
  __device__ static Sum join(const Sum& a, const Sum& b) { return {a.value + b.value}; }
};

__global__ void __launch_bounds__(kThreadsOfRow) loss_of_row(const LossRows<float> a) {
  __shared__ Top tops[kThreadsOfRow / kLanes];
  __shared__ Sum sums[kThreadsOfRow / kLanes];
  const auto row = static_cast<int64_t>(blockIdx.x), thread = static_cast<int64_t>(threadIdx.x), size = a.vocab_size;
  float* logits = a.logits + row * size;
  const int64_t target = a.targets[row];
  Top own = {-INFINITY, 0, size};
  for (int64_t i = thread; i < size; i += kThreadsOfRow) own = Top::join(own, {logits[i], logits[i], i});
  const Top top = joined(own, tops, Top::join);
  Sum of_own = {0};
  for (int64_t i = thread; i < size; i += kThreadsOfRow) of_own.value += expf(logits[i] - top.logit);
  const float mass = joined(of_own, sums, Sum::join).value, at_target = 0 <= target && target < size ? logits[target] : NAN;
  const double uniform = a.smoothing / static_cast<double>(size);
  if (thread == 0) {
    const double log_sum = static_cast<double>(top.logit) + log(static_cast<double>(mass));
    a.nll[row] = log_sum - static_cast<double>(at_target);
    a.loss[row] = log_sum - (1 - a.smoothing) * static_cast<double>(at_target) - uniform * static_cast<double>(top.total);
    a.correct[row] = top.place == target;
  }
  if (!a.wants_gradient) return;
  __syncthreads();  // all have read the target's logit
  const float scale = 1 / mass, spread = static_cast<float>(uniform), off_target = static_cast<float>(1 - a.smoothing);
  for (int64_t i = thread; i < size; i += kThreadsOfRow) {
    const float gradient = expf(logits[i] - top.logit) * scale - spread - (i == target ? off_target : 0.f);
    if (a.rounded_gradient != nullptr) {
      a.rounded_gradient[row * size + i] = stored<uint16_t>(gradient);
    } else {
      logits[i] = gradient;
    }
  }
}

}  // namespace

template <class Normed>
const char* residual_norm_forward(const ResidualNormForward<float, Normed>& args, int64_t rows, void* stream) {
  return start_for_rows(normalize<Normed>, args, rows, stream);
}

template <class Normed, class Output>
const char* residual_norm_backward(const ResidualNormBackward<float, Normed, Output>& args, int64_t rows, void* stream) {
  if (const char* const error = start_for_rows(denormalize<Normed, Output>, args, rows, stream)) return error;
  return start_for_sums(sum_norm_gradients<Normed, Output>, args, rows, stream);
}

template <class Stored>
const char* gated_rms_forward(const GatedRmsRows<float, Stored>& args, int64_t rows, void* stream) {
  return start_for_rows(normalize_gated<Stored>, args, rows, stream);
}

template <class Stored>
const char* gated_rms_backward(const GatedRmsRows<float, Stored>& args, int64_t rows, void* stream) {
  if (const char* const error = start_for_rows(denormalize_gated<Stored>, args, rows, stream)) return error;
  return start_for_sums(sum_gated_gradients<Stored>, args, rows, stream);
}

const char* activation_forward(const ActivationRows<float>& args, int64_t rows, void* stream) {
  return start_for_elements(activate, args, rows, stream);
}

const char* activation_backward(const ActivationRows<float>& args, int64_t rows, void* stream) {
  return start_for_elements(deactivate, args, rows, stream);
}

const char* drop(const DropRows<float>& args, int64_t rows, void* stream) {
  return start_for_elements(drop_all, args, rows, stream);
}

const char* round_rows(const RoundedRows<float>& args, int64_t rows, void* stream) {
  return start_for_sums(round_and_sum, args, rows, stream);
}

const char* smoothed_loss(const LossRows<float>& args, int64_t rows, void* stream) {
  return start(loss_of_row, static_cast<unsigned>(rows), kThreadsOfRow, stream, args);
}

template const char* residual_norm_forward(const ResidualNormForward<float, float>&, int64_t, void*);
template const char* residual_norm_forward(const ResidualNormForward<float, uint16_t>&, int64_t, void*);
template const char* residual_norm_backward(const ResidualNormBackward<float, float, float>&, int64_t, void*);
template const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, float>&, int64_t, void*);
template const char* residual_norm_backward(const ResidualNormBackward<float, float, uint16_t>&, int64_t, void*);
template const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, uint16_t>&, int64_t, void*);
template const char* gated_rms_forward(const GatedRmsRows<float, float>&, int64_t, void*);
template const char* gated_rms_forward(const GatedRmsRows<float, uint16_t>&, int64_t, void*);
template const char* gated_rms_backward(const GatedRmsRows<float, float>&, int64_t, void*);
template const char* gated_rms_backward(const GatedRmsRows<float, uint16_t>&, int64_t, void*);

}  // namespace lacuna::gpu

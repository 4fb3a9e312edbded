#include "kernels/row_kernels.h"

#include <type_traits>

#include "kernels/activation_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

template <class T, class Normed>
void residual_norm_forward(const ResidualNormForward<T, Normed>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  const int64_t n = a.columns;
  const T *gain = a.gain, *bias = a.bias;
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T *x = a.residual + row * n, *z = x;
    if (a.output) {
      const T* y = a.output + (row - a.first_row) * n;
      T* sum = a.sum + row * n;
      for_each_dropped(cursor, n, [=](int64_t i, T factor) { sum[i] = x[i] + factor * y[i]; });
      z = sum;
    }
    const T mean = a.is_rms ? T(0) : sum_of(z, n) / static_cast<T>(n);
    const T squares = sum_over<T>(n, [=](int64_t i) { return (z[i] - mean) * (z[i] - mean); });
    const T inverse = T(1) / std::sqrt(squares / static_cast<T>(n) + a.epsilon);
    Normed* normed = a.normed + row * n;
    if (bias) {  // NOLINT(bugprone-branch-clone): the branches differ under their pragmas
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) normed[i] = stored<Normed>((z[i] - mean) * inverse * gain[i] + bias[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) normed[i] = stored<Normed>((z[i] - mean) * inverse * gain[i]);
    }
    if (a.mean) a.mean[row] = mean;
    if (a.inverse_deviation) a.inverse_deviation[row] = inverse;
  }
}

// With h = (z - mean) / deviation and g = gain * gradient of the normed row: dz = (g - mean(g) - h mean(g h)) /
// deviation; RMSNorm has no mean(g) term.
template <class T, class Normed, class Output>
void residual_norm_backward(const ResidualNormBackward<T, Normed, Output>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  const int64_t n = a.columns, first_sum = begin / kRowsPerSum * n;
  const T* gain = a.gain;
  T *gain_sums = a.gain_sums + first_sum, *bias_sums = a.bias_sums + first_sum;
  T* output_sums = a.output_sums ? a.output_sums + first_sum : nullptr;
  for (int64_t i = 0; i < n; ++i) gain_sums[i] = bias_sums[i] = 0;
  for (int64_t i = 0; output_sums && i < n; ++i) output_sums[i] = 0;
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T* z = a.sum + row * n;
    const Normed* dy = a.normed_gradient + row * n;
    const T mean = a.mean[row], inverse = a.inverse_deviation[row];
    T sum_g = 0, sum_gh = 0;
#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (int64_t i = 0; i < n; ++i) {
      const T y = loaded<T>(dy[i]), h = (z[i] - mean) * inverse, g = y * gain[i];
      gain_sums[i] += y * h;
      bias_sums[i] += y;
      sum_g += g;
      sum_gh += g * h;
    }
    const T mean_g = a.is_rms ? T(0) : sum_g / static_cast<T>(n), mean_gh = sum_gh / static_cast<T>(n);
    T* dx = a.residual_gradient + row * n;
    const T* dz = a.sum_gradient ? a.sum_gradient + row * n : nullptr;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      dx[i] = (dz ? dz[i] : T(0)) + inverse * (loaded<T>(dy[i]) * gain[i] - mean_g - (z[i] - mean) * inverse * mean_gh);
    Output* out = a.output_gradient ? a.output_gradient + row * n : nullptr;
    if (out && output_sums) {
      for_each_dropped(cursor, n, [=](int64_t i, T factor) {
        out[i] = stored<Output>(dx[i] * factor);
        output_sums[i] += dx[i] * factor;
      });
    } else if (out) {
      for_each_dropped(cursor, n, [=](int64_t i, T factor) { out[i] = stored<Output>(dx[i] * factor); });
    }
  }
}

template <class T, class Stored>
LACUNA_INLINE T inverse_rms(const Stored* row, int64_t count, T epsilon) {
  const T squares = sum_over<T>(count, [=](int64_t i) { return loaded<T>(row[i]) * loaded<T>(row[i]); });
  return T(1) / std::sqrt(squares / static_cast<T>(count) + epsilon);
}

template <class T, class Stored>
void gated_rms_forward(const GatedRmsRows<T, Stored>& a, int64_t begin, int64_t end) {
  const int64_t n = a.columns;
  const T *gain = a.gain, *gate = a.gate;
  for (int64_t row = begin; row < end; ++row) {
    const Stored* x = a.input + row * n;
    Stored* y = a.result + row * n;
    const T inverse = inverse_rms(x, n, a.epsilon);
    if (gate) {  // NOLINT(bugprone-branch-clone): the branches differ under their pragmas
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = stored<Stored>(loaded<T>(x[i]) * inverse * gain[i] * sigmoid(gate[i] * loaded<T>(x[i])));
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = stored<Stored>(loaded<T>(x[i]) * inverse * gain[i]);
    }
  }
}

// With h = x / rms, s = sigmoid(gate x) and g = gain s * gradient of the result: dx = (g - h mean(g h)) / rms + g h (1
// - s) gate.
template <class T, class Stored>
void gated_rms_backward(const GatedRmsRows<T, Stored>& a, int64_t begin, int64_t end) {
  const int64_t n = a.columns;
  const T *gain = a.gain, *gate = a.gate;
  T *gain_sums = a.gain_sums + begin / kRowsPerSum * n, *gate_sums = gate ? a.gate_sums + begin / kRowsPerSum * n : nullptr;
  for (int64_t i = 0; i < n; ++i) gain_sums[i] = 0;
  for (int64_t i = 0; gate && i < n; ++i) gate_sums[i] = 0;
  for (int64_t row = begin; row < end; ++row) {
    const Stored *x = a.input + row * n, *dy = a.gradient + row * n;
    Stored* dx = a.input_gradient + row * n;
    const T inverse = inverse_rms(x, n, a.epsilon);
    T sum_gh = 0;
    if (gate) {  // NOLINT(bugprone-branch-clone): the branches differ under their pragmas
#pragma omp simd reduction(+ : sum_gh)
      for (int64_t i = 0; i < n; ++i) {
        const T z = loaded<T>(x[i]), d = loaded<T>(dy[i]), s = sigmoid(gate[i] * z), h = z * inverse, gh = d * gain[i] * s * h;
        gain_sums[i] += d * h * s;
        gate_sums[i] += gh * (T(1) - s) * z;
        sum_gh += gh;
      }
    } else {
#pragma omp simd reduction(+ : sum_gh)
      for (int64_t i = 0; i < n; ++i) {
        const T d = loaded<T>(dy[i]), h = loaded<T>(x[i]) * inverse;
        gain_sums[i] += d * h;
        sum_gh += d * gain[i] * h;
      }
    }
    const T mean_gh = sum_gh / static_cast<T>(n);
    // s once more: rows of bf16 have no room for it.
    if (gate) {  // NOLINT(bugprone-branch-clone): as above
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const T z = loaded<T>(x[i]), s = sigmoid(gate[i] * z), h = z * inverse, g = loaded<T>(dy[i]) * gain[i] * s;
        dx[i] = stored<Stored>((g - h * mean_gh) * inverse + g * h * (T(1) - s) * gate[i]);
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) dx[i] = stored<Stored>((loaded<T>(dy[i]) * gain[i] - loaded<T>(x[i]) * inverse * mean_gh) * inverse);
    }
  }
}

template <class T>
void round_rows(const RoundedRows<T>& a, int64_t begin, int64_t end) {
  T* const sums = a.sums + begin / kRowsPerSum * a.columns;
  for (int64_t i = 0; i < a.columns; ++i) sums[i] = 0;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = a.input + row * a.columns;
    uint16_t* to = a.rounded + row * a.columns;
#pragma omp simd
    for (int64_t i = 0; i < a.columns; ++i) {
      sums[i] += x[i];
      to[i] = rounded(x[i]);
    }
  }
}

template <class T>
void sum_rows(const SummedRows<T>& a, int64_t begin, int64_t end) {
  T* const sums = a.sums + begin / kRowsPerSum * a.columns;
  for (int64_t i = 0; i < a.columns; ++i) sums[i] = 0;
  for (int64_t row = begin; row < end; ++row) {
    const uint16_t* x = a.input + row * a.columns;
#pragma omp simd
    for (int64_t i = 0; i < a.columns; ++i) sums[i] += loaded<T>(x[i]);
  }
}

template <class T>
void widen_rows(int64_t rows, int64_t columns, const uint16_t* from, int64_t from_row, T* to) {
  for (int64_t row = 0; row < rows; ++row, from += from_row, to += columns) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) to[i] = loaded<T>(from[i]);
  }
}

template <class T>
void narrow_rows(int64_t rows, int64_t columns, const T* from, uint16_t* to, int64_t to_row) {
  for (int64_t row = 0; row < rows; ++row, from += columns, to += to_row) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) to[i] = rounded(from[i]);
  }
}

template <class T>
void embed(const EmbedRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T* x = a.table + a.ids[row] * a.columns;
    T *y = a.result + row * a.columns, scale = a.ids[row] == a.zero_id ? T(0) : a.scale;
    if (a.position_table) {
      const T* position = a.position_table + a.positions[row] * a.columns;
      for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = factor * (scale * x[i] + position[i]); });
    } else {
      for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = factor * scale * x[i]; });
    }
  }
}

template <class T>
void drop(const DropRows<T>& a, int64_t begin, int64_t end) {
  DropoutCursor<T> cursor(a.dropout, begin);
  for (int64_t row = begin; row < end; ++row, cursor.next_row()) {
    const T* x = a.input + row * a.columns;
    T* y = a.result + row * a.columns;
    for_each_dropped(cursor, a.columns, [=](int64_t i, T factor) { y[i] = factor * x[i]; });
  }
}

template <class T>
void gather_sums(const GatherSums<T>& a, int64_t first_group, int64_t last_group) {
  for (int64_t group = first_group; group < last_group; ++group) {
    T* to = a.result + a.ids[group] * a.columns;
    for (int64_t r = a.starts[group]; r < a.starts[group + 1]; ++r) {
      const T* from = a.input + a.rows[r] * a.columns;
#pragma omp simd
      for (int64_t i = 0; i < a.columns; ++i) to[i] += a.scale * from[i];
    }
  }
}

template <class T>
void smoothed_loss(const LossRows<T>& a, int64_t begin, int64_t end) {
  const int64_t size = a.vocab_size;
  const double uniform = a.smoothing / static_cast<double>(size);
  for (int64_t row = begin; row < end; ++row) {
    T* logits = a.logits + row * size;
    const int64_t target = a.targets[row];
    const T top = max_of(logits, size), total = sum_of(logits, size), at_target = logits[target];
    int64_t first = 0;
    if (at_target == top)
      while (logits[first] != top) ++first;
    a.correct[row] = at_target == top && first == target;
    const T mass = sum_of_exponentials(logits, size, top, a.wants_gradient ? logits : nullptr);
    const double log_sum = static_cast<double>(top) + std::log(static_cast<double>(mass));
    a.nll[row] = log_sum - static_cast<double>(at_target);
    a.loss[row] = log_sum - (1 - a.smoothing) * static_cast<double>(at_target) - uniform * static_cast<double>(total);
    if (!a.wants_gradient) continue;
    const T scale = T(1) / mass, spread = static_cast<T>(uniform), off_target = static_cast<T>(1 - a.smoothing);
    const T gradient_at_target = logits[target] * scale - spread - off_target;
    if (a.rounded_gradient) {
      uint16_t* rounded = a.rounded_gradient + row * size;
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) rounded[i] = rounded_to_bf16(static_cast<float>(logits[i] * scale - spread));
      rounded[target] = rounded_to_bf16(static_cast<float>(gradient_at_target));
    } else {
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) logits[i] = logits[i] * scale - spread;
      logits[target] = gradient_at_target;
    }
  }
}

template <class T>
T log_sum_exp(const T* row, int64_t count, T* maxima) {
  const int64_t whole = count / kMaximumOf;
  for (int64_t i = 0; i < whole; ++i) maxima[i] = max_of(row + i * kMaximumOf, kMaximumOf);
  if (whole * kMaximumOf < count) maxima[whole] = max_of(row + whole * kMaximumOf, count - whole * kMaximumOf);
  const T top = max_of(maxima, (count + kMaximumOf - 1) / kMaximumOf);
  return top + std::log(sum_of_exponentials(row, count, top, static_cast<T*>(nullptr)));
}

template <class T>
uint64_t at_least(const T* row, int64_t count, T subtracted, T bound) {
  uint64_t bits = 0;
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16) {
      const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(row + i), _mm512_set1_ps(subtracted));
      bits |= uint64_t{_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_GE_OQ)} << i;
    }
#else
    for (; i + 8 <= count; i += 8) {
      const __m256 x = _mm256_sub_ps(_mm256_loadu_ps(row + i), _mm256_set1_ps(subtracted));
      bits |= static_cast<uint64_t>(_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(bound), _CMP_GE_OQ))) << i;
    }
#endif
  }
  for (; i < count; ++i) bits |= uint64_t{row[i] - subtracted >= bound} << i;
  return bits;
}

template <class T, class Normed, class Output>
constexpr ResidualNormKernels<T, Normed, Output> residual_norm() {
  return {residual_norm_forward<T, Normed>, residual_norm_backward<T, Normed, Output>};
}

template <class T>
constexpr RowKernels<T> table() {
  return {kTarget,
          residual_norm<T, T, T>(),
          residual_norm<T, T, uint16_t>(),
          residual_norm<T, uint16_t, T>(),
          residual_norm<T, uint16_t, uint16_t>(),
          {gated_rms_forward<T, T>, gated_rms_backward<T, T>},
          {gated_rms_forward<T, uint16_t>, gated_rms_backward<T, uint16_t>},
          activation_forward<T>,
          activation_backward<T>,
          embed<T>,
          drop<T>,
          gather_sums<T>,
          smoothed_loss<T>,
          log_sum_exp<T>,
          at_least<T>,
          {biased_activation_forward<T, T>, biased_activation_backward<T, T>},
          {biased_activation_forward<T, uint16_t>, biased_activation_backward<T, uint16_t>},
          round_rows<T>,
          sum_rows<T>,
          widen_rows<T>,
          narrow_rows<T>,
          swiglu_forward<T>,
          swiglu_backward<T>};
}

}  // namespace

extern const RowKernels<float> kFloat;
extern const RowKernels<double> kDouble;
constinit const RowKernels<float> kFloat = table<float>();
constinit const RowKernels<double> kDouble = table<double>();

}  // namespace LACUNA_TARGET
}  // namespace lacuna

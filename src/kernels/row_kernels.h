#pragma once

#include <cstdint>
#include <vector>

#include "base/activation.h"
#include "kernels/cpu_target.h"

/// The inner loops of the fused kernels over rows of float or double, compiled once for each instruction set. Every
/// function works on rows [begin, end), and a row's result depends on that row alone, so its bits depend on neither
/// threads nor batch.
namespace lacuna {

/// The number of rows in each partial sum over rows. It is fixed, so that sums over all rows do not depend on the
/// number of threads.
inline constexpr int64_t kRowsPerSum = 128;

/// The number of consecutive elements of a row for which log_sum_exp returns one maximum.
inline constexpr int64_t kMaximumOf = 64;

/// The dropout of ragged rows (kernels/dropout.h). threshold 0 = nothing is dropped.
struct DropoutRows {
  uint64_t key = 0;
  uint32_t threshold = 0;            ///< an element is dropped if its 16 random bits are below
  double scale = 1;                  ///< the factor of a kept element
  const int32_t* offsets = nullptr;  ///< [sentences + 1]: the first row of each sentence, and behind them the number of rows
  const int64_t* ids = nullptr;      ///< [sentences]: the keys of the sentences' random numbers
  int64_t sentences = 0;
};

// Stored, Normed, Output: the type T of a kernel, or uint16_t for numbers rounded to bf16.

/// sum = residual + dropout(output); normed = norm(sum) * gain + bias. All [T, columns].
template <class T, class Normed, class Output = T>
struct ResidualNormForward {
  int64_t columns;
  const T* residual;
  const Output* output;  ///< null = nothing is added, and the sum is the residual; other than T on a GPU only
  int64_t first_row;     ///< the output begins at this row
  DropoutRows dropout;
  bool is_rms;
  const T *gain, *bias;  ///< bias null = none
  T epsilon;
  T* sum;  ///< null = nothing is added
  Normed* normed;
  T *mean, *inverse_deviation;  ///< [T] each, for the backward pass; null = not wanted
};

template <class T, class Normed, class Output>
struct ResidualNormBackward {
  int64_t columns;
  const Normed* normed_gradient;
  const T* sum_gradient;  ///< null = zero
  const T *sum, *mean, *inverse_deviation;
  DropoutRows dropout;
  bool is_rms;
  const T* gain;
  T* residual_gradient;
  Output* output_gradient;   ///< null = not wanted
  T *gain_sums, *bias_sums;  ///< [blocks of kRowsPerSum, columns]; a call covers one block (a GPU: kernels/gpu/kernels.h)
  T* output_sums;            ///< the same, of the output's gradient before it is rounded; null = not wanted
};

template <class T, class Normed, class Output>
struct ResidualNormKernels {
  void (*forward)(const ResidualNormForward<T, Normed>&, int64_t begin, int64_t end);
  void (*backward)(const ResidualNormBackward<T, Normed, Output>&, int64_t begin, int64_t end);
};

/// result = gain * input / sqrt(mean(input²) + epsilon), times sigmoid(gate * input) where there is a gate. All [T,
/// columns].
template <class T, class Stored>
struct GatedRmsRows {
  int64_t columns;
  const Stored* input;
  const T *gain, *gate;  ///< gate null = none
  T epsilon;
  Stored* result;          ///< forward only; what follows: backward only
  const Stored* gradient;  ///< of the result
  Stored* input_gradient;
  T *gain_sums, *gate_sums;  ///< [blocks of kRowsPerSum, columns]; a call covers one block; gate_sums null = no gate
  T* inverse_rms;            ///< [T] for a GPU's backward pass, which writes and reads it; null on the CPU
};

template <class T, class Stored>
struct GatedRms {
  void (*forward)(const GatedRmsRows<T, Stored>&, int64_t begin, int64_t end);
  void (*backward)(const GatedRmsRows<T, Stored>&, int64_t begin, int64_t end);
};

/// result = dropout(f(input)), where f is the activation.
template <class T>
struct ActivationRows {
  int64_t columns;
  Activation activation;
  DropoutRows dropout;
  const T* input;     ///< backward: not read by relu
  const T* gradient;  ///< backward only
  T* result;          ///< forward: written; backward: read
  T* input_gradient;  ///< backward only
};

/// result = dropout(f(input + bias)); backward: input_gradient, and its column sums, taken before it is rounded.
template <class T, class Stored>
struct BiasedActivationRows {
  int64_t columns;
  Activation activation;
  DropoutRows dropout;
  int64_t first_row;      ///< input (forward) or gradient (backward) begins at this row
  const T *input, *bias;  ///< backward: not read by relu, and input whole
  Stored* result;         ///< forward: written; backward: read
  const T* gradient;      ///< this and what follows: backward only
  Stored* input_gradient;
  T* bias_sums;  ///< [blocks of kRowsPerSum, columns]; a call covers one block
};

template <class T, class Stored>
struct BiasedActivation {
  void (*forward)(const BiasedActivationRows<T, Stored>&, int64_t begin, int64_t end);
  void (*backward)(const BiasedActivationRows<T, Stored>&, int64_t begin, int64_t end);
};

/// result = dropout(swish(gate) * value), where a row of the input [T, 2 columns] is the gate and then the value.
template <class T>
struct SwigluRows {
  int64_t columns;
  DropoutRows dropout;
  const T* input;
  T* result;          ///< forward only
  const T* gradient;  ///< this and what follows: backward only
  T* input_gradient;
};

/// rounded = input in bf16, and the column sums of the input.
template <class T>
struct RoundedRows {
  int64_t columns;
  const T* input;
  uint16_t* rounded;
  T* sums;  ///< [blocks of kRowsPerSum, columns]; a call covers one block
};

/// The column sums of rows of bf16.
template <class T>
struct SummedRows {
  int64_t columns;
  const uint16_t* input;
  T* sums;  ///< [blocks of kRowsPerSum, columns]; a call covers one block
};

/// result = dropout(scale * table[ids] + position_table[positions]), where the row of zero_id is taken to be zero.
template <class T>
struct EmbedRows {
  int64_t columns;
  const int64_t* ids;
  const int32_t* positions;
  const T *table, *position_table;  ///< position_table null = none
  T scale;
  int64_t zero_id;  ///< -1 = none
  DropoutRows dropout;
  T* result;
  int64_t table_rows = 0;  ///< a GPU's kernel reads no others
};

/// result = dropout(input).
template <class T>
struct DropRows {
  int64_t columns;
  const T* input;
  DropoutRows dropout;
  T* result;
};

/// result[id of group] = scale * the sum of the group's rows, in order. Group g owns rows[starts[g]] to rows[starts[g +
/// 1]].
template <class T>
struct GatherSums {
  int64_t columns;
  const T* input;
  const int64_t *rows, *starts, *ids;
  T scale;
  T* result;
};

/// Label-smoothed cross-entropy of each row, and its gradient if that is wanted.
template <class T>
struct LossRows {
  int64_t vocab_size;
  T* logits;
  const int64_t* targets;
  double smoothing;
  bool wants_gradient;
  uint16_t* rounded_gradient;  ///< [T, vocab_size] bf16; null = the logits become the gradient
  double *loss, *nll;          ///< [T]
  int64_t* correct;            ///< [T] 0 or 1
};

template <class T>
struct RowKernels {
  CpuTarget target;  ///< kAvx2 or kAvx512
  ResidualNormKernels<T, T, T> residual_norm;
  ResidualNormKernels<T, T, uint16_t> residual_norm_of_bf16;
  ResidualNormKernels<T, uint16_t, T> residual_norm_to_bf16;
  ResidualNormKernels<T, uint16_t, uint16_t> residual_norm_in_bf16;
  GatedRms<T, T> gated_rms;
  GatedRms<T, uint16_t> rounded_gated_rms;
  void (*activation_forward)(const ActivationRows<T>&, int64_t begin, int64_t end);
  void (*activation_backward)(const ActivationRows<T>&, int64_t begin, int64_t end);
  void (*embed)(const EmbedRows<T>&, int64_t begin, int64_t end);
  void (*drop)(const DropRows<T>&, int64_t begin, int64_t end);
  void (*gather_sums)(const GatherSums<T>&, int64_t first_group, int64_t last_group);
  void (*smoothed_loss)(const LossRows<T>&, int64_t begin, int64_t end);
  /// Returns the log of the sum of exp(row[0 .. count)). Sets maxima [ceil(count / kMaximumOf)] to the largest of each
  /// kMaximumOf elements; NaN is ignored there.
  T (*log_sum_exp)(const T* row, int64_t count, T* maxima);
  /// Returns bits: bit i is set if row[i] - subtracted >= bound; count is at most 64.
  uint64_t (*at_least)(const T* row, int64_t count, T subtracted, T bound);
  BiasedActivation<T, T> biased_activation;
  BiasedActivation<T, uint16_t> rounded_activation;
  void (*round_rows)(const RoundedRows<T>&, int64_t begin, int64_t end);
  void (*sum_rows)(const SummedRows<T>&, int64_t begin, int64_t end);
  /// widen_rows converts bf16 rows, `from_row` elements apart, to contiguous rows of T; narrow_rows rounds such rows to
  /// bf16 rows `to_row` apart.
  void (*widen_rows)(int64_t rows, int64_t columns, const uint16_t* from, int64_t from_row, T* to);
  void (*narrow_rows)(int64_t rows, int64_t columns, const T* from, uint16_t* to, int64_t to_row);
  void (*swiglu_forward)(const SwigluRows<T>&, int64_t begin, int64_t end);
  void (*swiglu_backward)(const SwigluRows<T>&, int64_t begin, int64_t end);
};

/// Returns the implementations that this machine can run, the fastest first. T: float or double.
template <class T>
std::vector<const RowKernels<T>*> all_row_kernels();

/// Returns the implementation in use: the fastest, unless another was set.
template <class T>
const RowKernels<T>& row_kernels();

/// Makes row_kernels() return `kernels` from now on; for tests.
template <class T>
void set_row_kernels(const RowKernels<T>& kernels);

}  // namespace lacuna

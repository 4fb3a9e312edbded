#pragma once

#include <limits>

#include "kernels/row_kernels.h"

/// The row kernels for GPUs. Their arguments are those of the CPU's loops (kernels/row_kernels.h), with pointers into a GPU's
/// memory; numbers are float, or bf16 as bits. The code (the other headers of this folder) is compiled by nvcc for GPUs (kernels.cu), and
/// by the host's compiler for tests, which emulate blocks of threads.
namespace lacuna::gpu {

#if LACUNA_CUDA
inline constexpr bool kAreBuilt = true;
#else
inline constexpr bool kAreBuilt = false;
#endif

/// The number of rows in each partial sum that residual_norm_backward leaves.
inline constexpr int64_t kRowsPerNormSum = 8;

/// The gradient of dropout(f(input)), and its column sums taken before it is rounded. The gradient of the input may lie where that of the
/// result does.
template <class Stored>
struct ActivationGradientRows {
  ActivationRows<Stored> rows;
  float* sums;  ///< [blocks of kRowsPerSum, columns]
};

/// Adds scale times the sums of the rows of dropout(input) that share a key, in order, to the keys' rows of the result. `order` [T] sorts
/// the rows by key, `keys` [T] are in that order.
struct SumsByKey {
  int64_t columns;
  const float* input;
  DropoutRows dropout;
  const int64_t *order, *keys;
  int64_t left_out;  ///< a key that nothing is added for; -1 = none
  float scale;
  float* result;
  int64_t result_rows;  ///< keys beyond are left out
};

/// The most tokens of a row that are found on a GPU.
inline constexpr int32_t kMostBest = 256;
/// Stands for a token of a row whose logits are not numbers; its log-probability is minus infinity.
inline constexpr int32_t kNoToken = std::numeric_limits<int32_t>::max();

/// A search for the best tokens of rows of logits. A log-probability is a logit less the logarithm of the row's sum of exp(logit).
struct BestRows {
  int64_t columns;
  const float* logits;     ///< [rows, columns]
  int32_t k;               ///< at most kMostBest and `columns`
  const int32_t* asked;    ///< [rows] a token of each row; null = `asked_of_all`
  int32_t asked_of_all;    ///< the same of each; kNoToken = none
  float* log_probs;        ///< [rows, k] best first; equal ones are ordered by the lower token
  int32_t* tokens;         ///< [rows, k]
  float* asked_log_probs;  ///< [rows]; not written if none is asked for
};

/// The rows of a table that continue rows of another: row i is `from`'s row parents[i], and behind it its new slot.
struct SlotMoves {
  const int32_t* parents;    ///< [rows]; -1 = none: a row of its new slot alone
  const int32_t* new_slots;  ///< [rows]
  int64_t from_stride, to_stride;
  const int32_t *from, *from_counts;  ///< [rows of `from`, from_stride], and how many slots each has
  int32_t *to, *to_counts;            ///< [rows, to_stride]
  int32_t* positions;                 ///< [rows] that of each new slot in its row
};

/// Rows of attention weights and of the mask model's scores, [rows, columns], and what kernels/calibration.h makes of them.
struct CalibrationRows {
  enum class Way { kShared, kFixed, kPerturbed };  ///< gated or annealed; fixed; perturbed

  int64_t columns;
  Way way;
  const float *base, *mask_scores;
  const float* gate_scores;  ///< [rows]; null = `share` is given
  const float* even;         ///< kFixed, kPerturbed
  float share, factor;
  float* weights = nullptr;                        ///< forward: written; backward, kFixed: read
  float *penalty = nullptr, *mean_mask = nullptr;  ///< [rows], kPerturbed, forward only; what follows: backward only
  const float* weights_gradient = nullptr;
  const float* penalty_gradient = nullptr;  ///< [rows], kPerturbed; null = 0
  float* base_gradient = nullptr;
  float* mask_gradient = nullptr;  ///< of mask_scores, kPerturbed
  float* gate_gradient = nullptr;  ///< [rows], of gate_scores; null = there are none
};

/// The functions that start kernels. Each processes all rows on the current GPU, on `stream`, and returns null or an error message. Sums
/// are always added up in the same order; a row's result depends on it alone.
class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual const char* residual_norm_forward(const ResidualNormForward<float, float, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_forward(const ResidualNormForward<float, float, uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_forward(const ResidualNormForward<float, uint16_t, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_forward(const ResidualNormForward<float, uint16_t, uint16_t>&, int64_t rows, void* stream) const = 0;
  // Partial sums are [blocks of kRowsPerNormSum, columns].
  virtual const char* residual_norm_backward(const ResidualNormBackward<float, float, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_backward(const ResidualNormBackward<float, float, uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* gated_rms_forward(const GatedRmsRows<float, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* gated_rms_forward(const GatedRmsRows<float, uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* gated_rms_backward(const GatedRmsRows<float, float>&, int64_t rows, void* stream) const = 0;
  virtual const char* gated_rms_backward(const GatedRmsRows<float, uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* activation_forward(const ActivationRows<float>&, int64_t rows, void* stream) const = 0;
  virtual const char* activation_forward(const ActivationRows<uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* activation_backward(const ActivationGradientRows<float>&, int64_t rows, void* stream) const = 0;
  virtual const char* activation_backward(const ActivationGradientRows<uint16_t>&, int64_t rows, void* stream) const = 0;
  virtual const char* embed(const EmbedRows<float>&, int64_t rows, void* stream) const = 0;
  virtual const char* sum_by_key(const SumsByKey&, int64_t rows, void* stream) const = 0;
  virtual const char* drop(const DropRows<float>&, int64_t rows, void* stream) const = 0;
  virtual const char* round_rows(const RoundedRows<float>&, int64_t rows, void* stream) const = 0;
  virtual const char* find_best(const BestRows&, int64_t rows, void* stream) const = 0;
  virtual const char* move_slots(const SlotMoves&, int64_t rows, void* stream) const = 0;
  virtual const char* calibration_forward(const CalibrationRows&, int64_t rows, void* stream) const = 0;
  virtual const char* calibration_backward(const CalibrationRows&, int64_t rows, void* stream) const = 0;
  virtual const char* smoothed_loss(const LossRows<float>&, int64_t rows, void* stream) const = 0;
};

/// The kernels that nvcc has compiled. Exist in builds with CUDA only.
const Kernels& compiled_kernels();

/// For tests: sends tensors on the CPU through these kernels, compiled for the host, and in all else the way of tensors on a GPU, in place
/// of the CPU's loops; null ends that.
void emulate(const Kernels* kernels);

/// Returns the kernels for tensors on a GPU (`is_on_gpu`) or on the CPU; null if there are none.
const Kernels* kernels_for(bool is_on_gpu);

}  // namespace lacuna::gpu

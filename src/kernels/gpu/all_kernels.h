#pragma once

#include "kernels/gpu/activation.h"
#include "kernels/gpu/best_tokens.h"
#include "kernels/gpu/calibration.h"
#include "kernels/gpu/column_sums.h"
#include "kernels/gpu/embedding.h"
#include "kernels/gpu/gated_rms.h"
#include "kernels/gpu/loss.h"
#include "kernels/gpu/residual_norm.h"
#include "kernels/gpu/slots.h"

namespace lacuna::gpu {

/// The blocks of a kernel.
struct Grid {
  int64_t rows, columns = 1;

  /// Enough blocks, each of which does `of_block` of the work.
  static int64_t blocks(int64_t work, int64_t of_block) { return (work + of_block - 1) / of_block; }
};

/// All kernels, and how many blocks each takes. Launcher::start<Kernel>(args, rows, grid, stream) starts a kernel, or emulates it.
template <class Launcher>
class AllKernels final : public Kernels {
 public:
  const char* residual_norm_forward(const ResidualNormForward<float, float, float>& args, int64_t rows, void* stream) const override {
    return normalize(args, rows, stream);
  }
  const char* residual_norm_forward(const ResidualNormForward<float, float, uint16_t>& args, int64_t rows, void* stream) const override {
    return normalize(args, rows, stream);
  }
  const char* residual_norm_forward(const ResidualNormForward<float, uint16_t, float>& args, int64_t rows, void* stream) const override {
    return normalize(args, rows, stream);
  }
  const char* residual_norm_forward(const ResidualNormForward<float, uint16_t, uint16_t>& args, int64_t rows, void* stream) const override {
    return normalize(args, rows, stream);
  }
  const char* residual_norm_backward(const ResidualNormBackward<float, float, float>& args, int64_t rows, void* stream) const override {
    return denormalize(args, rows, stream);
  }
  const char* residual_norm_backward(const ResidualNormBackward<float, float, uint16_t>& args, int64_t rows, void* stream) const override {
    return denormalize(args, rows, stream);
  }
  const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, float>& args, int64_t rows, void* stream) const override {
    return denormalize(args, rows, stream);
  }
  const char* residual_norm_backward(const ResidualNormBackward<float, uint16_t, uint16_t>& args, int64_t rows,
                                     void* stream) const override {
    return denormalize(args, rows, stream);
  }
  const char* gated_rms_forward(const GatedRmsRows<float, float>& args, int64_t rows, void* stream) const override {
    return for_rows<NormalizeGated<float>>(args, rows, stream);
  }
  const char* gated_rms_forward(const GatedRmsRows<float, uint16_t>& args, int64_t rows, void* stream) const override {
    return for_rows<NormalizeGated<uint16_t>>(args, rows, stream);
  }
  const char* gated_rms_backward(const GatedRmsRows<float, float>& args, int64_t rows, void* stream) const override {
    return denormalize_gated(args, rows, stream);
  }
  const char* gated_rms_backward(const GatedRmsRows<float, uint16_t>& args, int64_t rows, void* stream) const override {
    return denormalize_gated(args, rows, stream);
  }
  const char* activation_forward(const ActivationRows<float>& args, int64_t rows, void* stream) const override {
    return for_elements<Activate<float>>(args, rows, stream);
  }
  const char* activation_forward(const ActivationRows<uint16_t>& args, int64_t rows, void* stream) const override {
    return for_elements<Activate<uint16_t>>(args, rows, stream);
  }
  const char* activation_backward(const ActivationGradientRows<float>& args, int64_t rows, void* stream) const override {
    return for_sums<Deactivate<float>>(args, args.rows.columns, rows, stream);
  }
  const char* activation_backward(const ActivationGradientRows<uint16_t>& args, int64_t rows, void* stream) const override {
    return for_sums<Deactivate<uint16_t>>(args, args.rows.columns, rows, stream);
  }
  const char* embed(const EmbedRows<float>& args, int64_t rows, void* stream) const override { return for_rows<Embed>(args, rows, stream); }
  const char* sum_by_key(const SumsByKey& args, int64_t rows, void* stream) const override {
    const Grid grid = {Grid::blocks(rows, SumByKey::kWarps), Grid::blocks(args.columns, 2 * kFeaturesOfWarp)};
    return Launcher::template start<SumByKey>(args, rows, grid, stream);
  }
  const char* drop(const DropRows<float>& args, int64_t rows, void* stream) const override {
    return for_elements<Drop>(args, rows, stream);
  }
  const char* round_rows(const RoundedRows<float>& args, int64_t rows, void* stream) const override {
    return for_sums<RoundAndSum>(args, args.columns, rows, stream);
  }
  const char* find_best(const BestRows& args, int64_t rows, void* stream) const override {
    return Launcher::template start<BestOfRow>(args, rows, {rows}, stream);
  }
  const char* move_slots(const SlotMoves& args, int64_t rows, void* stream) const override {
    return for_rows<MoveSlots>(args, rows, stream);
  }
  const char* calibration_forward(const CalibrationRows& args, int64_t rows, void* stream) const override {
    return for_rows<Calibrate>(args, rows, stream);
  }
  const char* calibration_backward(const CalibrationRows& args, int64_t rows, void* stream) const override {
    return for_rows<CalibrateBack>(args, rows, stream);
  }
  const char* smoothed_loss(const LossRows<float>& args, int64_t rows, void* stream) const override {
    return Launcher::template start<SmoothedLoss>(args, rows, {rows}, stream);
  }

 private:
  /// A warp for each row.
  template <class Kernel>
  static const char* for_rows(const typename Kernel::Args& args, int64_t rows, void* stream) {
    return Launcher::template start<Kernel>(args, rows, {Grid::blocks(rows, Kernel::kWarps)}, stream);
  }
  /// A thread for each block of features.
  template <class Kernel>
  static const char* for_elements(const typename Kernel::Args& args, int64_t rows, void* stream) {
    const int64_t threads = rows * FeatureBlocks{args.columns}.count();
    return Launcher::template start<Kernel>(args, rows, {Grid::blocks(threads, Kernel::kWarps * kLanes)}, stream);
  }
  /// A block for kRowsPerSum rows and a warp's features.
  template <class Kernel>
  static const char* for_sums(const typename Kernel::Args& args, int64_t columns, int64_t rows, void* stream) {
    return Launcher::template start<Kernel>(args, rows, {Grid::blocks(rows, kRowsPerSum), Grid::blocks(columns, kFeaturesOfWarp)}, stream);
  }

  template <class Normed, class Output>
  static const char* normalize(const ResidualNormForward<float, Normed, Output>& args, int64_t rows, void* stream) {
    if (args.columns <= 4 * kFeaturesOfWarp) return for_rows<Normalize<Normed, Output, 4>>(args, rows, stream);
    if (args.columns <= 8 * kFeaturesOfWarp) return for_rows<Normalize<Normed, Output, 8>>(args, rows, stream);
    return for_rows<Normalize<Normed, Output, 0>>(args, rows, stream);
  }
  template <class Normed, class Output>
  static const char* denormalize(const ResidualNormBackward<float, Normed, Output>& args, int64_t rows, void* stream) {
    const int64_t parts = Grid::blocks(rows, kRowsPerNormSum);
    const auto start = [&]<class Kernel>(Kernel) {
      return Launcher::template start<Kernel>(args, rows, {Grid::blocks(parts, Kernel::kWarps)}, stream);
    };
    if (args.columns <= 4 * kFeaturesOfWarp) return start(Denormalize<Normed, Output, 4>());
    if (args.columns <= 8 * kFeaturesOfWarp) return start(Denormalize<Normed, Output, 8>());
    return start(Denormalize<Normed, Output, 0>());
  }
  template <class Stored>
  static const char* denormalize_gated(const GatedRmsRows<float, Stored>& args, int64_t rows, void* stream) {
    if (const char* const error = for_rows<DenormalizeGated<Stored>>(args, rows, stream)) return error;
    return for_sums<SumGatedGradients<Stored>>(args, args.columns, rows, stream);
  }
};

}  // namespace lacuna::gpu

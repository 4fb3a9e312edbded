#pragma once

#include "kernels/gpu/all_kernels.h"
#include "train/adam_step.h"

/// Adam's kernels: for nvcc, and for tests that emulate them.
namespace lacuna {

/// A thread for each element.
template <bool kAverages>
struct UpdateAll {
  struct Args {
    AdamPointers<float> pointers;
    AdamNumbers<float> numbers;
    const UpdateDecision* decision;
  };
  static constexpr int kWarps = 8, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t count) {
    const int64_t i = (block.index() * kWarps + block.warp()) * gpu::kLanes + block.lane();
    if (i >= count || (args.decision != nullptr && args.decision->applies == 0)) return;
    const AdamNumbers<float> numbers = args.decision != nullptr ? args.decision->numbers : args.numbers;
    update_element<float, kAverages>(args.pointers, numbers, i);
    if (args.pointers.rounded != nullptr) args.pointers.rounded[i] = gpu::stored<uint16_t>(args.pointers.value[i]);
  }
};

/// Decides about an update by a single thread: an update that is not finite is left out and not counted.
struct DecideUpdate {
  using Args = DecisionArgs;
  static constexpr int kWarps = 1, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t /*rows*/) {
    if (block.lane() != 0) return;
    UpdateRecord& record = *args.record;
    bool is_finite = *args.loss - *args.loss == 0;  // neither infinite nor NaN
    for (int g = 0; g < 2; ++g) {
      record.norms[g] = g < args.groups ? args.rule.gradient_scale * std::sqrt(*args.squares[g]) : 0;
      is_finite = is_finite && record.norms[g] - record.norms[g] == 0;
    }
    record.is_finite = is_finite ? 1 : 0;
    for (int g = 0; g < args.groups; ++g) {
      if (is_finite) args.decisions[g]->numbers = AdamNumbers<float>(args.rule.step(++record.updates[g], record.norms[g]));
      args.decisions[g]->applies = is_finite ? 1 : 0;
    }
  }
};

template <class Launcher>
struct AdamStarters {
  static const char* update(const AdamPointers<float>& pointers, const AdamStep& step, const UpdateDecision* decision, int64_t count,
                            void* stream) {
    const gpu::Grid grid = {gpu::Grid::blocks(count, UpdateAll<false>::kWarps * gpu::kLanes)};
    const AdamNumbers<float> numbers(step);
    if (pointers.average != nullptr) return Launcher::template start<UpdateAll<true>>({pointers, numbers, decision}, count, grid, stream);
    return Launcher::template start<UpdateAll<false>>({pointers, numbers, decision}, count, grid, stream);
  }
  static const char* decide(const DecisionArgs& args, void* stream) { return Launcher::template start<DecideUpdate>(args, 1, {1}, stream); }
  static constexpr AdamKernels kKernels = {update, decide};
};

}  // namespace lacuna

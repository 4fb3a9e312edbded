#pragma once

#include "kernels/gpu/activation.h"

/// What calibrated attention makes of rows of weights: a warp for each row.
namespace lacuna::gpu {

/// The base of both kernels: runs over the elements of the warp's row.
struct CalibrationKernel {
  using Args = CalibrationRows;
  static constexpr int kWarps = 4, kSharedBytes = 0;

 protected:
  /// An element of a row.
  struct Element {
    float weight, mask, even;  ///< even: 0 where it is not read

    LACUNA_KERNEL_CODE float boost() const { return expf(1 - mask); }
  };
  /// The row of a warp, of which each lane has some elements: the same ones in every loop, so that it may read what it wrote.
  template <class Block>
  struct Row {
    const Block& block;
    const Args& args;
    int64_t first;

    /// Calls f(place, element).
    template <class F>
    LACUNA_KERNEL_CODE void for_each(const F& f) const {
      for (int64_t i = first + block.lane(); i < first + args.columns; i += kLanes)
        f(i, Element{args.base[i], sigmoid(args.mask_scores[i]), args.even == nullptr ? 0.f : args.even[i]});
    }
    /// Returns the sum of f(place, element), on every lane.
    template <class F>
    LACUNA_KERNEL_CODE float sum(const F& f) const {
      float own = 0;
      for_each([&](int64_t i, const Element& e) { own += f(i, e); });
      return warp_sum(block, own);
    }
    LACUNA_KERNEL_CODE float mean_weight() const {
      return sum([](int64_t, const Element& e) { return e.even * e.weight; });
    }
  };

  template <class Block>
  LACUNA_KERNEL_CODE static int64_t row_of(const Block& block) {
    return block.index() * kWarps + block.warp();
  }
  /// The share of the base's weights.
  LACUNA_KERNEL_CODE static float share_of(const Args& a, int64_t row) {
    return a.gate_scores == nullptr ? a.share : sigmoid(a.gate_scores[row]);
  }
  /// The distance of the mask from 1, by the mean square.
  template <class Block>
  LACUNA_KERNEL_CODE static float distance_of(const Row<Block>& row) {
    return sqrtf(row.sum([](int64_t, const Element& e) { return e.even * (1 - e.mask) * (1 - e.mask); }));
  }
};

struct Calibrate : CalibrationKernel {
  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = row_of(block);
    if (row >= rows) return;
    const Row<Block> all = {block, a, row * a.columns};
    if (a.way == Args::Way::kShared) {
      const float share = share_of(a, row);
      all.for_each([&](int64_t i, const Element& e) { a.weights[i] = e.weight * (share + (1 - share) * e.boost()); });
    } else if (a.way == Args::Way::kFixed) {
      fix(all);
    } else {
      perturb(all, row);
    }
  }

 private:
  template <class Block>
  LACUNA_KERNEL_CODE static void fix(const Row<Block>& row) {
    const Args& a = row.args;
    const auto score = [&](const Element& e) { return e.weight * (1 + a.factor * e.boost()); };
    float top = 0;  // no score is below
    row.for_each([&](int64_t, const Element& e) { top = fmaxf(top, score(e)); });
    for (int distance = kLanes / 2; distance > 0; distance /= 2) top = fmaxf(top, row.block.exchanged(top, distance));
    const float total = row.sum([&](int64_t i, const Element& e) { return a.weights[i] = e.even > 0 ? expf(score(e) - top) : 0.f; });
    const float scale = 1 / fmaxf(total, 1e-30f);
    row.for_each([&](int64_t i, const Element&) { a.weights[i] *= scale; });
  }
  template <class Block>
  LACUNA_KERNEL_CODE static void perturb(const Row<Block>& all, int64_t row) {
    const Args& a = all.args;
    const float mean = all.mean_weight(), distance = distance_of(all);
    const float mean_mask = all.sum([](int64_t, const Element& e) { return e.even * e.mask; });
    all.for_each([&](int64_t i, const Element& e) { a.weights[i] = mean + e.mask * (e.weight - mean); });
    if (all.block.lane() > 0) return;
    a.penalty[row] = a.factor * distance;
    a.mean_mask[row] = mean_mask;
  }
};

/// The gradients of Calibrate's inputs.
struct CalibrateBack : CalibrationKernel {
  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = row_of(block);
    if (row >= rows) return;
    const Row<Block> all = {block, a, row * a.columns};
    if (a.way == Args::Way::kShared) {
      share(all, row);
    } else if (a.way == Args::Way::kFixed) {
      fix(all);
    } else {
      perturb(all, row);
    }
  }

 private:
  template <class Block>
  LACUNA_KERNEL_CODE static void share(const Row<Block>& all, int64_t row) {
    const Args& a = all.args;
    const float share = share_of(a, row);
    const float of_share = all.sum([&](int64_t i, const Element& e) {
      const float g = a.weights_gradient[i], boost = e.boost();
      a.base_gradient[i] = g * (share + (1 - share) * boost);
      return g * e.weight * (1 - boost);
    });
    if (a.gate_gradient != nullptr && all.block.lane() == 0) a.gate_gradient[row] = of_share * share * (1 - share);
  }
  template <class Block>
  LACUNA_KERNEL_CODE static void fix(const Row<Block>& row) {
    const Args& a = row.args;
    const float mean = row.sum([&](int64_t i, const Element&) { return a.weights[i] * a.weights_gradient[i]; });
    row.for_each([&](int64_t i, const Element& e) {
      a.base_gradient[i] = (1 + a.factor * e.boost()) * a.weights[i] * (a.weights_gradient[i] - mean);
    });
  }
  template <class Block>
  LACUNA_KERNEL_CODE static void perturb(const Row<Block>& all, int64_t row) {
    const Args& a = all.args;
    const float mean = all.mean_weight(), distance = distance_of(all);
    const float of_mean = all.sum([&](int64_t i, const Element& e) { return a.weights_gradient[i] * (1 - e.mask); });
    const bool has_slope = a.penalty_gradient != nullptr && distance > 0;
    const float slope = has_slope ? a.penalty_gradient[row] * a.factor / distance : 0.f;
    all.for_each([&](int64_t i, const Element& e) {
      const float g = a.weights_gradient[i], of_mask = g * (e.weight - mean) - slope * e.even * (1 - e.mask);
      a.base_gradient[i] = e.mask * g + e.even * of_mean;
      a.mask_gradient[i] = of_mask * e.mask * (1 - e.mask);
    });
  }
};

}  // namespace lacuna::gpu

#pragma once

#include "kernels/gpu/block.h"

/// Residual, dropout and norm: a warp for each row, which stays in its registers.
namespace lacuna::gpu {

/// The quads of a row that belong to one lane: quad j holds features 128 j + 4 lane to 128 j + 4 lane + 3. Rows of up to 128 kQuads
/// features are kept in registers; kQuads 0 = a row of any length, which is read again where it is needed again.
template <class Block, int kQuads>
class LaneRow {
 public:
  LACUNA_KERNEL_CODE LaneRow(const Block& block, int64_t columns) : columns_(columns), first_(Quad::kSize * block.lane()) {}

  /// Calls f(j) for quads 2 p and 2 p + 1 of each pair p, after before(p). All lanes go through the same pairs.
  template <class Before, class F>
  LACUNA_KERNEL_CODE void for_each_pair(const Before& before, const F& f) const {
    if constexpr (kQuads > 0) {
      LACUNA_UNROLL
      for (int j = 0; j < kQuads; ++j) {
        if (j % 2 == 0) before(j / 2);
        if (left(j) > 0) f(j);
      }
    } else {
      for (int j = 0; j * kFeaturesOfWarp < columns_; ++j) {
        if (j % 2 == 0) before(j / 2);
        if (left(j) > 0) f(j);
      }
    }
  }
  template <class F>
  LACUNA_KERNEL_CODE void for_each(const F& f) const {
    for_each_pair([](int) {}, f);
  }
  LACUNA_KERNEL_CODE int64_t columns() const { return columns_; }
  LACUNA_KERNEL_CODE int64_t place(int j) const { return j * kFeaturesOfWarp + first_; }
  /// The number of the row's features from quad j on; more than 4 mean that all of it exists.
  LACUNA_KERNEL_CODE int64_t left(int j) const { return columns_ - place(j); }
  template <class Stored>
  LACUNA_KERNEL_CODE Quad load(const Stored* row, int j) const {
    return load_quad(row + place(j), left(j));
  }
  template <class Stored>
  LACUNA_KERNEL_CODE void store(Stored* row, int j, const Quad& quad) const {
    store_quad(row + place(j), quad, left(j));
  }
  /// Calls f(k) for the features of quad j that exist.
  template <class F>
  LACUNA_KERNEL_CODE void for_features(int j, const F& f) const {
    LACUNA_UNROLL
    for (int k = 0; k < Quad::kSize; ++k)
      if (k < left(j)) f(k);
  }

 private:
  int64_t columns_, first_;
};

/// A lane's quads of one row of numbers in memory, kept in registers where these suffice.
template <class Block, int kQuads, class Stored>
class LaneNumbers {
 public:
  LACUNA_KERNEL_CODE LaneNumbers(const LaneRow<Block, kQuads>& row, const Stored* from) : row_(row), from_(from) {}
  LACUNA_KERNEL_CODE void load() {
    if constexpr (kQuads > 0) row_.for_each([&](int j) { quads_[j] = row_.load(from_, j); });
  }
  /// Says which numbers this lane has just written to quad j.
  LACUNA_KERNEL_CODE void set(int j, const Quad& quad) {
    if constexpr (kQuads > 0) quads_[j] = quad;
  }
  LACUNA_KERNEL_CODE Quad operator[](int j) const {
    if constexpr (kQuads > 0) {
      return quads_[j];
    } else {
      return row_.load(from_, j);
    }
  }

 private:
  const LaneRow<Block, kQuads>& row_;
  const Stored* from_;
  Quad quads_[kQuads > 0 ? kQuads : 1];
};

/// Writes sum = residual + dropout(output) and normed = norm(sum) * gain + bias.
template <class Normed, class Output, int kQuads>
struct Normalize {
  using Args = ResidualNormForward<float, Normed, Output>;
  static constexpr int kWarps = 4, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = block.index() * kWarps + block.warp(), at = row * a.columns;
    if (row >= rows) return;
    const LaneRow<Block, kQuads> lane(block, a.columns);
    LaneNumbers<Block, kQuads, float> z(lane, a.output != nullptr ? a.sum + at : a.residual + at);
    a.output != nullptr ? add_output(block, lane, a, row, z) : z.load();
    const auto n = static_cast<float>(a.columns);
    float total = 0, squares = 0;
    lane.for_each([&](int j) { lane.for_features(j, [&, quad = z[j]](int k) { total += quad.x[k]; }); });
    const float mean = a.is_rms ? 0.f : warp_sum(block, total) / n;
    lane.for_each([&](int j) { lane.for_features(j, [&, quad = z[j]](int k) { squares += (quad.x[k] - mean) * (quad.x[k] - mean); }); });
    const float inverse = 1 / sqrtf(warp_sum(block, squares) / n + a.epsilon);
    lane.for_each([&](int j) {
      Quad quad = z[j];
      const Quad gain = lane.load(a.gain, j), bias = a.bias != nullptr ? lane.load(a.bias, j) : Quad();
      for (int k = 0; k < Quad::kSize; ++k) quad.x[k] = (quad.x[k] - mean) * inverse * gain.x[k] + bias.x[k];
      lane.store(a.normed + at, j, quad);
    });
    if (block.lane() != 0) return;
    if (a.mean != nullptr) a.mean[row] = mean;
    if (a.inverse_deviation != nullptr) a.inverse_deviation[row] = inverse;
  }

 private:
  template <class Block>
  LACUNA_KERNEL_CODE static void add_output(const Block& block, const LaneRow<Block, kQuads>& lane, const Args& a, int64_t row,
                                            LaneNumbers<Block, kQuads, float>& z) {
    KeptFeatures<Block> kept(block, a.dropout, row);
    const float* const x = a.residual + row * a.columns;
    const Output* const y = a.output + (row - a.first_row) * a.columns;
    lane.for_each_pair([&](int pair) { kept.draw(pair); },
                       [&](int j) {
                         Quad sum = lane.load(x, j);
                         const Quad output = lane.load(y, j), factors = kept.factors(j);
                         for (int k = 0; k < Quad::kSize; ++k) sum.x[k] += factors.x[k] * output.x[k];
                         lane.store(a.sum + row * a.columns, j, sum);
                         z.set(j, sum);
                       });
  }
};

/// Does what residual_norm_backward of row_kernels.cpp does. A warp processes kRowsPerNormSum rows, one after the other, and leaves their
/// column sums.
template <class Normed, class Output, int kQuads>
struct Denormalize {
  using Args = ResidualNormBackward<float, Normed, Output>;
  static constexpr int kWarps = 4, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t part = block.index() * kWarps + block.warp(), first = part * kRowsPerNormSum;
    const int64_t end = first + kRowsPerNormSum < rows ? first + kRowsPerNormSum : rows;
    if (first >= rows) return;
    const LaneRow<Block, kQuads> lane(block, a.columns);
    Sums<Block> of_gain(lane, a.gain_sums, part), of_bias(lane, a.bias_sums, part), of_output(lane, a.output_sums, part);
    for (int64_t row = first; row < end; ++row) one_row(block, lane, a, row, of_gain, of_bias, of_output);
    of_gain.store();
    of_bias.store();
    of_output.store();
  }

 private:
  /// A lane's part of column sums: in registers, or in its place of the result.
  template <class Block>
  class Sums {
   public:
    /// `sums` null = they are not wanted.
    LACUNA_KERNEL_CODE Sums(const LaneRow<Block, kQuads>& lane, float* sums, int64_t part)
        : lane_(lane), to_(sums == nullptr ? nullptr : sums + part * lane.columns()) {
      if constexpr (kQuads == 0) {
        if (to_ != nullptr) lane.for_each([&](int j) { lane.store(to_, j, Quad()); });
      }
    }
    LACUNA_KERNEL_CODE void add(int j, const Quad& quad) {
      if constexpr (kQuads > 0) {
        for (int k = 0; k < Quad::kSize; ++k) sums_[j].x[k] += quad.x[k];
      } else if (to_ != nullptr) {
        Quad sum = lane_.load(to_, j);
        for (int k = 0; k < Quad::kSize; ++k) sum.x[k] += quad.x[k];
        lane_.store(to_, j, sum);
      }
    }
    LACUNA_KERNEL_CODE void store() const {
      if constexpr (kQuads > 0) {
        if (to_ != nullptr) lane_.for_each([&](int j) { lane_.store(to_, j, sums_[j]); });
      }
    }

   private:
    const LaneRow<Block, kQuads>& lane_;
    float* to_;
    Quad sums_[kQuads > 0 ? kQuads : 1];
  };

  template <class Block>
  LACUNA_KERNEL_CODE static void one_row(const Block& block, const LaneRow<Block, kQuads>& lane, const Args& a, int64_t row,
                                         Sums<Block>& of_gain, Sums<Block>& of_bias, Sums<Block>& of_output) {
    const int64_t at = row * a.columns;
    LaneNumbers<Block, kQuads, float> z(lane, a.sum + at);
    LaneNumbers<Block, kQuads, Normed> dy(lane, a.normed_gradient + at);
    z.load();
    dy.load();
    const float mean = a.mean[row], inverse = a.inverse_deviation[row];
    float sum_g = 0, sum_gh = 0;
    lane.for_each([&](int j) {
      const Quad of_z = z[j], y = dy[j], gain = lane.load(a.gain, j);  // beyond the row's end y is 0
      Quad yh;
      for (int k = 0; k < Quad::kSize; ++k) {
        yh.x[k] = y.x[k] * (of_z.x[k] - mean) * inverse;
        sum_g += y.x[k] * gain.x[k];
        sum_gh += yh.x[k] * gain.x[k];
      }
      of_gain.add(j, yh);
      of_bias.add(j, y);
    });
    const auto n = static_cast<float>(a.columns);
    const float mean_g = a.is_rms ? 0.f : warp_sum(block, sum_g) / n, mean_gh = warp_sum(block, sum_gh) / n;
    KeptFeatures<Block> kept(block, a.dropout, row);
    const auto draw = [&](int pair) {
      if (a.output_gradient != nullptr) kept.draw(pair);
    };
    lane.for_each_pair(draw, [&](int j) {
      const Quad of_z = z[j], y = dy[j], gain = lane.load(a.gain, j);
      Quad dx = a.sum_gradient != nullptr ? lane.load(a.sum_gradient + at, j) : Quad();
      for (int k = 0; k < Quad::kSize; ++k) dx.x[k] += inverse * (y.x[k] * gain.x[k] - mean_g - (of_z.x[k] - mean) * inverse * mean_gh);
      lane.store(a.residual_gradient + at, j, dx);
      if (a.output_gradient == nullptr) return;
      const Quad factors = kept.factors(j);
      for (int k = 0; k < Quad::kSize; ++k) dx.x[k] *= factors.x[k];
      lane.store(a.output_gradient + at, j, dx);
      of_output.add(j, dx);
    });
  }
};

}  // namespace lacuna::gpu

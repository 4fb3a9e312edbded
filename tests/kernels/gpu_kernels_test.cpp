#include <optional>

#include "compare.h"
#include "emulated_kernels.h"
#include "kernels/calibration.h"
#include "kernels/embedding.h"
#include "kernels/layer_products.h"
#include "kernels/layers.h"
#include "kernels/projection_loss.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"
#include "kernels/shape_lists.h"

// The row kernels for GPUs against the references in double: on a GPU where there is one, and emulated on the CPU.
namespace lacuna {
namespace {

/// What attention's norm is given, on the CPU: context [T, D] and the result's gradient of float or bf16, gain [D] and gate [D] of float.
struct GatedRmsCase {
  Tensor context, gradient, gain, gate;  // gate undefined = none
};

/// Runs on a GPU, where there is one, and emulated on the CPU.
class RowsOnGpu : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    is_emulated_ = GetParam();
    if (!is_emulated_ && !(gpu::kAreBuilt && at::hasCUDA())) GTEST_SKIP() << "no GPU in this build or machine";
    at::manual_seed(7);
  }

  at::Device device() const { return is_emulated_ ? at::kCPU : at::kCUDA; }
  Tensor there(const Tensor& x) const { return x.defined() ? x.to(device()) : x; }
  /// Returns f(), with tensors on the CPU going the way of a GPU's if that is what is tested.
  template <class F>
  auto on_gpu(const F& f) const {
    std::optional<gpu::Emulation> emulation;
    if (is_emulated_) emulation.emplace();
    return f();
  }

  using Function = std::function<Tensor(const Inputs&)>;

  /// The result on the CPU, and the gradients of all inputs: for leaves of a type on a device.
  static std::vector<Tensor> outcome(const Function& f, const Inputs& inputs, at::ScalarType type, at::Device device) {
    Inputs leaves;
    leaves.reserve(inputs.size());
    for (const Tensor& x : inputs) leaves.push_back(x.to(device, type, /*non_blocking=*/false, /*copy=*/true).requires_grad_());
    const Tensor result = f(leaves);
    at::manual_seed(11);
    result.backward(at::randn(result.sizes(), at::kDouble).to(result.options()));
    std::vector<Tensor> all = {result.detach().cpu()};
    for (const Tensor& leaf : leaves) all.push_back(leaf.grad().defined() ? leaf.grad().cpu() : at::zeros_like(leaf).cpu());
    return all;
  }
  /// `kernel` of float does what `reference` does in double on the CPU.
  void expect_same(const Function& kernel, const Function& reference, const Inputs& inputs) const {
    const std::vector<Tensor> found = on_gpu([&] { return outcome(kernel, inputs, at::kFloat, device()); });
    const std::vector<Tensor> expected = outcome(reference, inputs, at::kDouble, at::kCPU);
    for (size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i], i == 0 ? "result" : "gradient " + std::to_string(i));
  }

  std::vector<Tensor> gated_rms_on_gpu(const GatedRmsCase& norm) const;

  bool is_emulated_ = false;
};

std::string name_of_way(const testing::TestParamInfo<bool>& way) {
  return way.param ? "Emulated" : "Gpu";
}
INSTANTIATE_TEST_SUITE_P(, RowsOnGpu, testing::Bool(), name_of_way);

using Function = std::function<Tensor(const Inputs&)>;

constexpr int64_t kRows = 140;  // a block of sums and a part of one

using NormOfSum = ResidualNorm (*)(const ResidualEnd&, const Tensor&);

Function norm_of_sum(NormOfSum kernel, bool is_rms, bool uses_sum, const Dropout& dropout) {
  return [=](const Inputs& in) {
    const ResidualNorm result = kernel({in[0], dropout, {in[2], is_rms ? Tensor() : in[3], is_rms}}, in[1]);
    return uses_sum ? result.normed + 2 * result.sum : result.normed;
  };
}

TEST_P(RowsOnGpu, NormalizeAsTheReference) {
  for (const int64_t columns : {7, 72, 256, 520, 1030})
    for (const bool is_rms : {false, true})
      for (const bool uses_sum : {false, true})
        for (const double rate : {0.0, 0.25}) {
          SCOPED_TRACE(testing::Message() << columns << " columns, rms " << is_rms << ", sum " << uses_sum << ", dropout " << rate);
          const Dropout dropout = a_dropout(rate, kRows);
          const auto rows = [&] { return spiky({kRows, columns}, at::kFloat); };
          const auto of_columns = [&] { return spiky({columns}, at::kFloat); };
          expect_same(norm_of_sum(residual_norm, is_rms, uses_sum, dropout),
                      norm_of_sum(reference::residual_norm, is_rms, uses_sum, dropout), {rows(), rows(), of_columns(), of_columns()});
        }
}

TEST_P(RowsOnGpu, NormalizeWithoutAnOutput) {
  const auto alone = [](NormOfSum kernel) {
    return [=](const Inputs& in) { return kernel({in[0], {}, {in[1], in[2], false}}, {}).normed; };
  };
  expect_same(alone(residual_norm), alone(reference::residual_norm),
              {spiky({kRows, 64}, at::kFloat), spiky({64}, at::kFloat), spiky({64}, at::kFloat)});
}

TEST_P(RowsOnGpu, NormalizeToBf16ForReadersOfIt) {
  const Tensor x = spiky({kRows, 72}, at::kFloat), y = spiky({kRows, 72}, at::kFloat), gain = spiky({72}, at::kFloat);
  const auto normed = [&](NormOfSum kernel, at::Device device) {
    const Tensor leaf = x.to(device, /*dtype=*/at::kFloat, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
    const ResidualNorm result = kernel({leaf, {}, {gain.to(device), {}, true}, Precision::kBf16}, y.to(device));
    result.normed.sum(at::kFloat).backward();
    return std::pair(result.normed.detach().cpu(), leaf.grad().cpu());
  };
  const auto [found, gradient] = on_gpu([&] { return normed(residual_norm, device()); });
  const auto [expected, expected_gradient] = normed(reference::residual_norm, at::kCPU);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(found.to(at::kFloat), expected, /*rtol=*/0x1p-8, /*atol=*/1e-5));
  expect_close(gradient, expected_gradient, "gradient");
}

GatedRmsCase gated_rms_case(int64_t rows, int64_t columns, at::ScalarType type, bool has_gate) {
  return {spiky({rows, columns}, type), at::randn({rows, columns}).to(type), at::randn({columns}),
          has_gate ? at::randn({columns}) : Tensor()};
}

constexpr double kEpsilon = 1e-8;

/// The result, and the gradients of context, gain and (if there is one) gate: by the kernels for a context of `Stored`.
template <class Stored>
std::vector<Tensor> gated_rms_of(const GatedRmsCase& norm, at::Device device) {
  const auto there = [device](const Tensor& x) { return x.defined() ? x.to(device) : x; };
  const auto stored = [](const Tensor& x) { return static_cast<Stored*>(x.mutable_data_ptr()); };
  const Tensor context = there(norm.context), gradient = there(norm.gradient), gain = there(norm.gain), gate = there(norm.gate);
  const Tensor result = at::empty_like(context), context_gradient = at::empty_like(context);
  const Tensor sums = at::empty({2, sum_blocks(context.size(0)), context.size(1)}, gain.options());
  const Tensor inverse_rms = at::empty({context.size(0)}, gain.options());
  const GatedRmsRows<float, Stored> args = {.columns = context.size(1),
                                            .input = stored(context),
                                            .gain = data_of<float>(gain),
                                            .gate = data_of<float>(gate),
                                            .epsilon = static_cast<float>(kEpsilon),
                                            .result = stored(result),
                                            .gradient = stored(gradient),
                                            .input_gradient = stored(context_gradient),
                                            .gain_sums = mutable_data_of<float>(sums[0]),
                                            .gate_sums = gate.defined() ? mutable_data_of<float>(sums[1]) : nullptr,
                                            .inverse_rms = mutable_data_of<float>(inverse_rms)};
  with_gpu_kernels(context, [&](const auto& kernels, void* stream) { return kernels.gated_rms_forward(args, context.size(0), stream); });
  with_gpu_kernels(context, [&](const auto& kernels, void* stream) { return kernels.gated_rms_backward(args, context.size(0), stream); });
  std::vector<Tensor> all = {result.cpu(), context_gradient.cpu(), sums[0].sum(0).cpu()};
  if (gate.defined()) all.push_back(sums[1].sum(0).cpu());
  return all;
}

std::vector<Tensor> RowsOnGpu::gated_rms_on_gpu(const GatedRmsCase& norm) const {
  return on_gpu([&] {
    return norm.context.scalar_type() == at::kBFloat16 ? gated_rms_of<uint16_t>(norm, device()) : gated_rms_of<float>(norm, device());
  });
}

/// The same of the same numbers by ATen, in double.
std::vector<Tensor> gated_rms_in_aten(const GatedRmsCase& norm) {
  Inputs leaves;
  for (const Tensor& x : {norm.context, norm.gain, norm.gate})
    if (x.defined()) leaves.push_back(x.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).requires_grad_());
  const Tensor &x = leaves[0], normed = x / at::sqrt(x.square().mean(-1, /*keepdim=*/true) + kEpsilon) * leaves[1];
  const Tensor result = norm.gate.defined() ? normed * at::sigmoid(leaves[2] * x) : normed;
  result.backward(norm.gradient.to(at::kDouble));
  std::vector<Tensor> all = {result.detach()};
  for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

/// As expect_close does; numbers of bf16 may be off by their rounding, too.
void expect_close_or_rounded(const Tensor& found, const Tensor& expected, const std::string& what) {
  if (found.scalar_type() == at::kFloat) return expect_close(found, expected, what);
  const double off = tolerance_of(at::kFloat) * (1 + expected.abs().max().item<double>());
  EXPECT_TRUE(at::allclose(found.to(at::kDouble), expected, /*rtol=*/0x1p-8, off)) << what;
}

/// Calls f with cases of both types, with and without a gate; some widths do not fill a warp's turns.
template <class F>
void for_gated_rms_cases(F f) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 7}, {kRows, 24}, {130, 256}, {20, 1000}})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
      for (const bool has_gate : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << at::toString(type) << ", gate " << has_gate);
        f(gated_rms_case(rows, columns, type, has_gate));
      }
}

TEST_P(RowsOnGpu, NormalizeAndGateAsInDouble) {
  for_gated_rms_cases([&](const GatedRmsCase& norm) {
    const std::vector<Tensor> found = gated_rms_on_gpu(norm), expected = gated_rms_in_aten(norm);
    ASSERT_EQ(found.size(), expected.size());
    const char* const names[] = {"result", "gradient of the context", "gradient of the gain", "gradient of the gate"};
    for (size_t i = 0; i < found.size(); ++i) expect_close_or_rounded(found[i], expected[i], names[i]);
  });
}

TEST_P(RowsOnGpu, NormalizeAndGateToTheSameBitsAgain) {
  for_gated_rms_cases([&](const GatedRmsCase& norm) {
    const std::vector<Tensor> first = gated_rms_on_gpu(norm), again = gated_rms_on_gpu(norm);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], again[i])) << "tensor " << i;
  });
}

TEST_P(RowsOnGpu, NormalizeAndGateARowAlone) {
  for_gated_rms_cases([&](const GatedRmsCase& norm) {
    const std::vector<Tensor> together = gated_rms_on_gpu(norm);
    for (const int64_t row : {int64_t{0}, norm.context.size(0) / 2, norm.context.size(0) - 1}) {
      const auto alone = [&](const Tensor& x) { return x.narrow(0, row, 1).clone(); };
      const std::vector<Tensor> found = gated_rms_on_gpu({alone(norm.context), alone(norm.gradient), norm.gain, norm.gate});
      for (const size_t i : {0, 1}) EXPECT_TRUE(at::equal(found[i], alone(together[i]))) << "tensor " << i << ", row " << row;
    }
  });
}

/// No rows: nothing to start. Rows of 0: the result is 0, and the gradient finite.
TEST_P(RowsOnGpu, NormalizeAndGateNothing) {
  EXPECT_EQ(gated_rms_on_gpu(gated_rms_case(0, 24, at::kFloat, true)).front().numel(), 0);
  GatedRmsCase norm = gated_rms_case(3, 24, at::kFloat, true);
  norm.context.zero_();
  const std::vector<Tensor> found = gated_rms_on_gpu(norm);
  EXPECT_EQ(found[0].abs().max().item<float>(), 0);
  EXPECT_TRUE(at::isfinite(found[1]).all().item<bool>());
}

/// Rows of weights [20, 3, columns], of which some keys are not seen, and in the last query's none.
struct CalibratedCase {
  Tensor base, mask_scores, gate_scores, even;
};

CalibratedCase calibrated_case(int64_t columns) {
  constexpr int64_t kQueries = 20, kHeads = 3;
  const Tensor sees = at::rand({kQueries, kHeads, columns}).gt(0.3).to(at::kFloat);
  sees[0].fill_(1);
  sees[kQueries - 1].zero_();
  const Tensor base = at::rand(sees.sizes()) * sees;
  return {base / base.sum(-1, true).clamp_min(1e-30), spiky(sees.sizes(), at::kFloat) * sees, spiky({kQueries, kHeads}, at::kFloat),
          sees / sees.sum(-1, true).clamp_min(1)};
}

/// Calls f with cases of some widths, which fill no warp's turn, or several.
template <class F>
void for_calibrated_cases(F f) {
  for (const int64_t columns : {1, 24, 64, 130}) {
    SCOPED_TRACE(testing::Message() << columns << " columns");
    f(calibrated_case(columns));
  }
}

TEST_P(RowsOnGpu, CalibrateAsInDouble) {
  for_calibrated_cases([&](const CalibratedCase& rows) {
    const auto like = [](const Tensor& x, const Tensor& other) { return x.to(other.options().requires_grad(false)); };
    const Function gated = [](const Inputs& in) { return gated_weights({in[0], in[1]}, in[2]); };
    expect_same(gated, gated, {rows.base, rows.mask_scores, rows.gate_scores});
    const Function annealed = [](const Inputs& in) { return annealed_weights({in[0], in[1]}, 0.3); };
    expect_same(annealed, annealed, {rows.base, rows.mask_scores});
    const Function fixed = [&](const Inputs& in) { return fixed_weights({in[0], in[1]}, like(rows.even, in[0]), 1.5); };
    expect_same(fixed, fixed, {rows.base, rows.mask_scores});
    for (const double factor : {0.0, 2.0}) {  // the penalty's
      const Function perturbed = [&](const Inputs& in) {
        const PerturbedWeights all = perturbed_weights({in[0], in[1]}, like(rows.even, in[0]), factor);
        EXPECT_FALSE(all.mean_mask.requires_grad());
        return at::cat({all.weights, all.penalty.unsqueeze(-1), all.mean_mask.unsqueeze(-1)}, -1);
      };
      expect_same(perturbed, perturbed, {rows.base, rows.mask_scores});
    }
  });
}

/// A mask of 1 has no slope.
TEST_P(RowsOnGpu, PerturbNothingWhereTheMaskIsOne) {
  const Tensor scores = there(at::full({2, 1, 5}, 200.)).requires_grad_(), base = there(at::rand({2, 1, 5})),
               even = there(at::full({2, 1, 5}, .2));
  const PerturbedWeights all = on_gpu([&] { return perturbed_weights({base, scores}, even, 1); });
  on_gpu([&] { return (all.weights.sum() + all.penalty.sum()).backward(), 0; });
  EXPECT_TRUE(at::allclose(all.weights, base));
  EXPECT_EQ(all.penalty.abs().max().item<float>(), 0);
  EXPECT_EQ(scores.grad().abs().max().item<float>(), 0);
}

/// Without gradients, a row comes to the same bits alone and among others.
TEST_P(RowsOnGpu, CalibrateARowAlone) {
  const at::NoGradGuard no_gradients;
  for_calibrated_cases([&](const CalibratedCase& rows) {
    const auto weights_of = [&](int64_t first, int64_t count) {
      const auto part = [&](const Tensor& x) { return there(x.narrow(0, first, count).contiguous()); };
      const MaskedWeights masked = {part(rows.base), part(rows.mask_scores)};
      return on_gpu([&] { return at::stack({gated_weights(masked, part(rows.gate_scores)), fixed_weights(masked, part(rows.even), 1)}); });
    };
    EXPECT_TRUE(at::equal(weights_of(3, 1), weights_of(0, 20).narrow(1, 3, 1)));
  });
}

TEST_P(RowsOnGpu, ActivateAsTheReference) {
  for (const Activation activation : kActivations)
    for (const double rate : {0.0, 0.25}) {
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", dropout " << rate);
      const Dropout dropout = a_dropout(rate, kRows);
      const auto with = [&](auto kernel) { return [=](const Inputs& in) { return kernel(in[0], activation, dropout); }; };
      expect_same(with(activation_dropout), with(reference::activation_dropout), {spiky({kRows, 130}, at::kFloat)});
    }
}

TEST_P(RowsOnGpu, LoseAsTheReference) {
  constexpr int64_t kVocabulary = 777, kTokens = kLossRows + 70;  // two chunks
  const Tensor targets = at::randint(kVocabulary, {kTokens}, at::kLong);
  for (const double smoothing : {0.0, 0.1}) {
    const auto with = [&](auto kernel, at::Device device) {
      return [=](const Inputs& in) {
        return kernel(in[0], in[1], targets.to(device), smoothing, Precision::kFp32, in[2]).loss.to(in[0].scalar_type());
      };
    };
    const auto ours = [](const auto&... arguments) { return projection_loss(arguments...); };
    const auto in_aten = [](const auto&... arguments) { return reference::projection_loss(arguments...); };
    expect_same(with(ours, device()), with(in_aten, at::kCPU),
                {at::randn({kTokens, 32}, at::kFloat), at::randn({kVocabulary, 32}, at::kFloat), at::randn({kVocabulary}, at::kFloat)});
  }
}

TEST_P(RowsOnGpu, LoseInBf16AsTheReference) {
  const Tensor targets = at::randint(300, {100}, at::kLong);
  const Inputs inputs = {at::randn({100, 32}, at::kFloat), at::randn({300, 32}, at::kFloat), at::randn({300}, at::kFloat)};
  const auto gradients = [&](auto kernel, at::Device device) {
    Inputs leaves;
    for (const Tensor& input : inputs)
      leaves.push_back(input.to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true).requires_grad_());
    const ProjectionLoss loss = kernel(leaves[0], leaves[1], targets.to(device), 0.1, Precision::kBf16, leaves[2]);
    loss.loss.backward();
    return std::vector<Tensor>{loss.loss.detach().cpu(), loss.nll.cpu(), leaves[0].grad().cpu(), leaves[1].grad().cpu(),
                               leaves[2].grad().cpu()};
  };
  const std::vector<Tensor> found = on_gpu([&] { return gradients(projection_loss, device()); }),
                            expected = gradients(reference::projection_loss, at::kCPU);
  for (size_t i = 0; i < found.size(); ++i)  // gradients of logits are rounded to 8 bits
    EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), 0x1p-7 * expected[i].abs().max().item<double>()) << "tensor " << i;
}

TEST_P(RowsOnGpu, CountTheFirstOfEqualLogits) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = there(at::ones({3, 1})), weight = there(at::ones({1000, 1}));
  weight[0][0] = 0;  // the first of the largest is 1
  const Tensor targets = there(at::tensor({int64_t{0}, int64_t{1}, int64_t{2}}));
  EXPECT_EQ(on_gpu([&] { return projection_loss(hidden, weight, targets, 0).correct.item<int64_t>(); }), 1);
}

TEST_P(RowsOnGpu, FindNoLossWhereALogitOrATargetIsNone) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = there(at::ones({1, 2})), weight = there(at::zeros({3, 2}));
  const auto nll = [&](int64_t target) {
    const Tensor targets = there(at::full({1}, target, at::kLong));
    return on_gpu([&] { return projection_loss(hidden, weight, targets, 0.1).nll.item<double>(); });
  };
  for (const int64_t target : {-1, 3}) EXPECT_TRUE(std::isnan(nll(target))) << target;
  EXPECT_NEAR(nll(0), std::log(3.0), 1e-6);
  weight[2][0] = NAN;
  EXPECT_TRUE(std::isnan(nll(0)));
}

TEST_P(RowsOnGpu, RoundAndSumAsTheCpu) {
  const Tensor rows = spiky({kRows, 70}, at::kFloat);
  const auto [found, sums] = on_gpu([&] { return rounded_with_sums(there(rows)); });
  const auto [expected, expected_sums] = rounded_with_sums(rows);
  EXPECT_TRUE(at::equal(found.cpu(), expected));
  expect_close(sums.cpu(), expected_sums);
}

TEST_P(RowsOnGpu, MultiplyAsTheCpu) {
  const Tensor a = at::randn({40, 72}).to(at::kBFloat16), b = at::randn({72, 24}).to(at::kBFloat16), start = at::randn({40, 24});
  for (const bool adds : {false, true}) {
    const Tensor here = start.clone(), result = there(start).clone();
    matmul_into(here, a, b, adds);
    on_gpu([&] { matmul_into(result, there(a), there(b), adds); });
    expect_close(result.cpu(), here, adds ? "sum" : "product");
  }
}

TEST_P(RowsOnGpu, EmbedAsTheReference) {
  constexpr int64_t kTable = 30;
  const Tensor ids = at::randint(kTable, {kRows}, at::kLong);
  const Tensor positions = at::arange(kRows, at::kInt).remainder(9);
  for (const int64_t columns : {7, 72, 300})
    for (const bool is_learned : {false, true})
      for (const double rate : {0.0, 0.25}) {
        SCOPED_TRACE(testing::Message() << columns << " columns, positions " << is_learned << ", dropout " << rate);
        const Dropout dropout = a_dropout(rate, kRows);
        const auto with = [&](auto kernel) {
          return [&, kernel](const Inputs& in) {
            return kernel(in[0], ids.to(in[0].device()), 1.7, is_learned ? in[1] : Tensor(), positions.to(in[0].device()), dropout,
                          /*zero_id=*/1);
          };
        };
        expect_same(with(embed), with(reference::embed), {at::randn({kTable, columns}), at::randn({9, columns})});
      }
}

TEST_P(RowsOnGpu, GetABatchInOneCopy) {
  const auto shape_of = [](const std::vector<int32_t>& lengths, std::vector<int64_t> ids) {
    return std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths, std::move(ids)));
  };
  const RaggedShapePtr src_shape = shape_of({2, 0, 3}, {7, 1, 5}), tgt_shape = shape_of({1, 1, 1}, {7, 1, 5});
  const std::vector<int32_t> src_ids = {9, 2, 8, 4, 2}, tgt_ids = {2, 3, 2}, more = {11, 12};
  Tensor of_more;
  const int64_t before = device_copies.to_device;
  const auto [src, tgt] = on_gpu([&] {
    return batch_on(device(), {src_ids, src_shape}, {tgt_ids, tgt_shape}, [&](Upload& upload) { upload.add(more, of_more); });
  });
  const ShapeLists lists = lists_on(src.values.device(), src_shape), again = lists_on(src.values.device(), src_shape);
  EXPECT_EQ(device_copies.to_device - before, 1);
  EXPECT_EQ(lists.ids.const_data_ptr(), again.ids.const_data_ptr());
  EXPECT_TRUE(at::equal(src.values.cpu(), at::tensor({9, 2, 8, 4, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(tgt.values.cpu(), at::tensor({2, 3, 2}, at::kLong)));
  EXPECT_EQ(tgt.shape, tgt_shape);
  EXPECT_TRUE(at::equal(of_more.cpu(), at::tensor({11, 12}, at::kInt)));
  EXPECT_TRUE(at::equal(lists.offsets.cpu(), at::tensor({0, 2, 2, 5}, at::kInt)));
  EXPECT_TRUE(at::equal(lists.ids.cpu(), at::tensor({7, 1, 5}, at::kLong)));
  EXPECT_TRUE(at::equal(lists.positions.cpu(), at::tensor({0, 1, 0, 1, 2}, at::kInt)));
  EXPECT_TRUE(at::equal(lists.first_rows.cpu(), at::tensor({0, 2}, at::kLong)));
  EXPECT_THROW(on_gpu([&] { return batch_on(device(), {tgt_ids, src_shape}, {tgt_ids, tgt_shape}, [](Upload&) {}); }), ShapeError);
}

TEST_P(RowsOnGpu, EmbedAnUnknownIdAsNoNumber) {
  const at::NoGradGuard no_gradients;
  const Tensor table = there(at::ones({3, 8})), ids = there(at::tensor({int64_t{2}, int64_t{3}, int64_t{-1}}));
  const Tensor rows = on_gpu([&] { return embed(table, ids, 1, {}, {}, {}); }).cpu();
  EXPECT_TRUE(at::equal(rows[0], at::ones({8})));
  EXPECT_TRUE(at::isnan(rows.narrow(0, 1, 2)).all().item<bool>());
}

/// The layers of a sub-layer's end and the feed-forward layer, all of whose tensors have gradients.
TEST_P(RowsOnGpu, FeedForwardAsTheReference) {
  for (const Activation activation : kActivations)
    for (const double rate : {0.0, 0.25}) {
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", dropout " << rate);
      const Dropout inside = a_dropout(rate, kRows), at_end = {rate, 5, inside.shape};
      const auto layer = [&](const Inputs& in) {
        const ResidualNorm result =
            feed_forward(in[0], {{in[1], in[2]}, {in[3], in[4]}, activation, inside}, {in[5], at_end, {in[6], in[7]}});
        return result.normed + 2 * result.sum;
      };
      const auto plain = [&](const Inputs& in) {
        const Tensor hidden = reference::activation_dropout(at::addmm(in[2], in[0], in[1].t()), activation, inside);
        const ResidualNorm result = reference::residual_norm({in[5], at_end, {in[6], in[7]}}, at::addmm(in[4], hidden, in[3].t()));
        return result.normed + 2 * result.sum;
      };
      expect_same(layer, plain,
                  {at::randn({kRows, 24}), at::randn({40, 24}) / 5, at::randn({40}), at::randn({24, 40}) / 6, at::randn({24}),
                   at::randn({kRows, 24}), at::randn({24}), at::randn({24})});
    }
}

TEST_P(RowsOnGpu, LinearToResidualAsTheReference) {
  const Dropout dropout = a_dropout(0.25, kRows);
  const auto layer = [&](const Inputs& in) {
    const ResidualNorm result = linear_to_residual(in[0], {in[1], in[2]}, {in[3], dropout, {in[4], in[5]}});
    return result.normed + 2 * result.sum;
  };
  const auto plain = [&](const Inputs& in) {
    const ResidualNorm result = reference::residual_norm({in[3], dropout, {in[4], in[5]}}, at::addmm(in[2], in[0], in[1].t()));
    return result.normed + 2 * result.sum;
  };
  expect_same(layer, plain,
              {at::randn({kRows, 40}), at::randn({24, 40}) / 6, at::randn({24}), at::randn({kRows, 24}), at::randn({24}), at::randn({24})});
}

}  // namespace
}  // namespace lacuna

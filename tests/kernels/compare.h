#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/activation.h"
#include "kernels/dropout.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// The largest difference allowed, relative to 1 + the largest expected value. Float: sums of some hundred products in another order;
/// double: the same, ten digits beyond.
inline double tolerance_of(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : 2e-5;
}

inline void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what = "value") {
  ASSERT_TRUE(actual.defined() && expected.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const Tensor want = expected.detach().to(at::kDouble);
  const double size = want.numel() == 0 ? 0 : want.abs().max().item<double>();
  const double off = want.numel() == 0 ? 0 : (actual.detach().to(at::kDouble) - want).abs().max().item<double>();
  EXPECT_LE(off, tolerance_of(actual.scalar_type()) * (1 + size)) << what;
}

/// Spiky numbers: most small, some large.
inline Tensor spiky(at::IntArrayRef sizes, at::ScalarType type) {
  return at::randn(sizes, at::kDouble).pow(3).to(type);
}

using Inputs = std::vector<Tensor>;

/// Runs both functions on the same inputs; their results and the gradients of every floating input must be the same.
inline void expect_same(const std::function<Tensor(const Inputs&)>& fused, const std::function<Tensor(const Inputs&)>& plain,
                        const Inputs& inputs) {
  Inputs mine, theirs;
  for (const Tensor& x : inputs) {
    mine.push_back(x.is_floating_point() ? x.clone().requires_grad_(true) : x);
    theirs.push_back(x.is_floating_point() ? x.clone().requires_grad_(true) : x);
  }
  const Tensor result = fused(mine), expected = plain(theirs);
  expect_close(result, expected);
  const Tensor direction = at::randn(expected.sizes(), at::kDouble).to(expected.scalar_type());
  (result * direction).sum().backward();
  (expected * direction).sum().backward();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (theirs[i].grad().defined()) expect_close(mine[i].grad(), theirs[i].grad(), "gradient of input " + std::to_string(i));
}

/// Three sentences, one of them empty, of `tokens` tokens in all.
inline RaggedShapePtr three_sentences(int32_t tokens) {
  return std::make_shared<const RaggedShape>(
      RaggedShape::of_lengths({tokens / 3, 0, tokens - tokens / 3}, {17, 3, (int64_t{1} << 40) + 5}));
}

inline Dropout a_dropout(double rate, int32_t tokens) {
  return {rate, 0x123456789abcdefull, three_sentences(tokens)};
}

inline constexpr Activation kActivations[] = {Activation::kRelu, Activation::kGelu, Activation::kSwish};

inline std::vector<size_t> row_kernel_sets() {
  std::vector<size_t> sets(all_row_kernels<float>().size());
  std::iota(sets.begin(), sets.end(), size_t{0});
  return sets;
}

/// `set`: the place among those that this machine can run.
inline void use_row_kernels(size_t set) {
  set_row_kernels(*all_row_kernels<float>()[set]);
  set_row_kernels(*all_row_kernels<double>()[set]);
}

/// Runs by each set of row kernels.
class RowKernelSets : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { use_row_kernels(GetParam()); }
  void TearDown() override { use_row_kernels(0); }
};

inline std::string name_of_set(const testing::TestParamInfo<size_t>& info) {
  return name_of(all_row_kernels<float>()[info.param]->target);
}

/// A number type and a set of row kernels.
struct KernelCase {
  at::ScalarType type;
  size_t set;
};

inline std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const size_t set : row_kernel_sets()) cases.push_back({type, set});
  return cases;
}

inline std::string name_of_type(const testing::TestParamInfo<KernelCase>& info) {
  return info.param.type == at::kDouble ? "Double" : "Float";
}
inline std::string name_of_case(const testing::TestParamInfo<KernelCase>& info) {
  return name_of_type(info) + "_" + name_of(all_row_kernels<float>()[info.param.set]->target);
}

/// Runs for each type by each set of row kernels.
class KernelTest : public testing::TestWithParam<KernelCase> {
 protected:
  void SetUp() override {
    at::manual_seed(7);
    use_row_kernels(GetParam().set);
  }
  void TearDown() override { use_row_kernels(0); }
  at::ScalarType type() const { return GetParam().type; }
};

}  // namespace lacuna

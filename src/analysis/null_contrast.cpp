#include "analysis/null_contrast.h"

#include <ATen/Functions.h>

#include "base/error.h"

namespace lacuna {
namespace {

at::Tensor matrix_of(const std::vector<std::vector<float>>& rows) {
  if (rows.size() < 2) throw ShapeError("NullContrast: one row of null rates; expected at least two");
  std::vector<at::Tensor> all;
  all.reserve(rows.size());
  for (const std::vector<float>& row : rows) all.push_back(at::tensor(at::ArrayRef<float>(row), at::kDouble));
  return at::stack(all);
}

at::Tensor covariance_of(const at::Tensor& rows) {
  const at::Tensor centred = rows - rows.mean(0);
  return centred.t().mm(centred) / (rows.size(0) - 1);
}

std::vector<double> numbers_of(const at::Tensor& row) {
  const at::Tensor numbers = row.contiguous();
  return {numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel()};
}

}  // namespace

NullContrast NullContrast::fit(const std::vector<std::vector<float>>& given, const std::vector<std::vector<float>>& shuffled) {
  constexpr double kRidge = 1e-4;  // heads that are never null, or null at once, don't make C singular
  const at::Tensor one = matrix_of(given), other = matrix_of(shuffled);
  const at::Tensor covariance = (covariance_of(one) + covariance_of(other)) / 2 + kRidge * at::eye(one.size(1), at::kDouble);
  NullContrast contrast;
  contrast.weights_ = numbers_of(at::linalg_solve(covariance, other.mean(0) - one.mean(0)));
  contrast.middle_ = numbers_of((one.mean(0) + other.mean(0)) / 2);
  return contrast;
}

double NullContrast::of(const std::vector<float>& null_rates) const {
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * (static_cast<double>(null_rates[i]) - middle_[i]);
  return sum;
}

}  // namespace lacuna

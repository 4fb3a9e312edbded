#include "bench/products_alone.h"

#include <ATen/Functions.h>

#include <vector>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "kernels/bf16_product.h"
#include "kernels/linear.h"

namespace lacuna {
namespace {

/// [rows, columns], by rows or by columns.
Tensor matrix(int64_t rows, int64_t columns, bool is_transposed, at::ScalarType type) {
  const Tensor drawn = is_transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
  return drawn.to(type);
}

/// The factors of one product, and how training makes it.
class ProductAlone {
 public:
  explicit ProductAlone(const ProductShape& shape)
      : shape_(shape),
        a_(matrix(shape.rows, shape.depth, shape.a_is_transposed, type())),
        b_(matrix(shape.depth, shape.columns, shape.b_is_transposed, type())),
        result_(at::zeros({shape.rows, shape.columns})) {}

  void run() {
    if (shape_.precision == FactorPrecision::kBf16) return bf16_product(result_, a_, b_, shape_.adds);
    if (shape_.adds) return add_product_of_transposed(result_, a_.t(), b_, shape_.precision);
    if (shape_.a_is_transposed) {
      result_ = product_of_transposed(a_.t(), b_, shape_.precision);
    } else {
      result_ =
          shape_.b_is_transposed ? product_with_transposed(a_, b_.t(), {}, shape_.precision) : lacuna::product(a_, b_, shape_.precision);
    }
  }

 private:
  at::ScalarType type() const { return shape_.precision == FactorPrecision::kBf16 ? at::kBFloat16 : at::kFloat; }

  ProductShape shape_;
  Tensor a_, b_, result_;
};

}  // namespace

double seconds_of_products_alone(const Profile& profile) {
  constexpr int kTimes = 5;
  const at::NoGradGuard no_gradient;
  double total = 0;
  for (const auto& [shape, count] : profile.products()) {
    ProductAlone product(shape);
    product.run();
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      const Stopwatch one;
      product.run();
      seconds.push_back(one.seconds());
    }
    total += static_cast<double>(count) * median(seconds);
  }
  return total;
}

}  // namespace lacuna

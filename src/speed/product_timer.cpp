#include "speed/product_timer.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "kernels/matmul.h"

namespace lacuna {
namespace {

constexpr std::array<std::string_view, 9> kProducts = {"aten::mm",
                                                       "aten::addmm",
                                                       "aten::linear",
                                                       "aten::matmul",
                                                       "aten::mm_out",
                                                       "aten::bmm",
                                                       "aten::addmm_",
                                                       "mkldnn::_linear_pointwise",
                                                       "lacuna::packed_product"};

std::atomic<int64_t> total_nanoseconds{0};
thread_local int open_products = 0;  // nesting depth on this thread

struct Started : at::ObserverContext {
  bool is_product = false;
  std::optional<Stopwatch> outermost;  // empty inside another product
};

bool is_product(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  return std::find(kProducts.begin(), kProducts.end(), name) != kProducts.end();
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  auto started = std::make_unique<Started>();
  started->is_product = is_product(function);
  if (started->is_product && open_products++ == 0) started->outermost.emplace();
  return started;
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* started = static_cast<const Started*>(context);
  if (started->is_product) --open_products;
  if (started->outermost) total_nanoseconds += std::llround(1e9 * started->outermost->seconds());
}

/// A random matrix [rows, columns], stored by rows or by columns.
Tensor matrix(int64_t rows, int64_t columns, bool is_transposed, at::ScalarType type) {
  const Tensor drawn = is_transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
  return drawn.to(type);
}

/// One product, computed as in training.
class ProductAlone {
 public:
  explicit ProductAlone(const ProductShape& shape)
      : shape_(shape),
        a_(matrix(shape.rows, shape.depth, shape.a_is_transposed, type())),
        b_(matrix(shape.depth, shape.columns, shape.b_is_transposed, type())),
        result_(at::zeros({shape.rows, shape.columns})) {}

  void run() { matmul_into(result_, a_, b_, shape_.adds, shape_.precision); }

 private:
  at::ScalarType type() const { return shape_.precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat; }

  ProductShape shape_;
  Tensor a_, b_, result_;
};

}  // namespace

ProductTimer::ProductTimer()
    : handle_(at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end).scopes({at::RecordScope::FUNCTION}))) {
  restart();
}
ProductTimer::~ProductTimer() {
  at::removeCallback(handle_);
}

double ProductTimer::seconds() const {
  return static_cast<double>(total_nanoseconds.load()) * 1e-9;
}
void ProductTimer::restart() {
  total_nanoseconds = 0;
}

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

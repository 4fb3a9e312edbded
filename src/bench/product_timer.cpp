#include "bench/product_timer.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "base/stopwatch.h"

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
thread_local int open_products = 0;  // that this thread is inside of

struct Started : at::ObserverContext {
  bool is_product = false;
  std::optional<Stopwatch> outermost;  // none inside another product
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

}  // namespace lacuna

#include "cli/product_timer.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;

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
thread_local int depth = 0;  // products that this thread is inside of

struct Started : at::ObserverContext {
  bool is_product = false;
  Clock::time_point at;
};

bool is_product(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  return std::find(kProducts.begin(), kProducts.end(), name) != kProducts.end();
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  auto started = std::make_unique<Started>();
  started->is_product = is_product(function);
  if (started->is_product && depth++ == 0) started->at = Clock::now();
  return started;
}

void on_end(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* started = static_cast<const Started*>(context);
  if (!started->is_product || --depth > 0) return;
  total_nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - started->at).count();
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

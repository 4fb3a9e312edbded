#include "kernels/best_tokens.h"

#include <algorithm>
#include <functional>

#include "base/device.h"

namespace lacuna::gpu {

bool finds_best(at::Device device) {
  return kernels_for(!device.is_cpu()) != nullptr;
}

void find_best(const at::Tensor& logits, int64_t k, const std::vector<int32_t>& asked, BestTokens& best) {
  const at::Tensor rows = logits.to(at::kFloat).contiguous();
  const int64_t count = rows.size(0), found = count * k;
  const bool is_one_asked = std::ranges::adjacent_find(asked, std::ranges::not_equal_to()) == asked.end();  // as at most steps: eos
  const at::Tensor asked_there = asked.empty() || is_one_asked ? at::Tensor() : tensor_of(asked, rows.device());
  // Log-probabilities, tokens and log-probabilities asked for lie side by side: one copy brings them here.
  const at::Tensor there = at::empty({2 * found + count}, rows.options().dtype(at::kInt));
  auto* const results = there.mutable_data_ptr<int32_t>();
  BestRows args = {.columns = rows.size(1),
                   .logits = rows.const_data_ptr<float>(),
                   .k = static_cast<int32_t>(k),
                   .asked = asked_there.defined() ? asked_there.const_data_ptr<int32_t>() : nullptr,
                   .asked_of_all = asked.empty() ? kNoToken : asked.front(),
                   .log_probs = reinterpret_cast<float*>(results),
                   .tokens = results + found,
                   .asked_log_probs = reinterpret_cast<float*>(results + 2 * found)};
  const auto start = [&](void* stream) { return kernels_for(!rows.is_cpu())->find_best(args, count, stream); };
  if (rows.is_cpu()) {
    start(nullptr);
  } else {
    on_gpu(rows.device(), start);
  }
  const at::Tensor here = on_host(there);
  const auto* const words = here.const_data_ptr<int32_t>();
  const auto* const numbers = reinterpret_cast<const float*>(words);
  best.k = k;
  best.log_probs.assign(numbers, numbers + found);
  best.tokens.assign(words + found, words + 2 * found);
  best.asked.assign(numbers + 2 * found, numbers + 2 * found + std::ssize(asked));
}

}  // namespace lacuna::gpu

#include "model/logits.h"

#include <algorithm>
#include <limits>

#include "kernels/row_kernels.h"

namespace lacuna {
namespace {

struct Candidate {
  float log_prob;
  int32_t token;
  bool operator<(const Candidate& other) const {  // better: "less", so that sorting puts the best first
    return log_prob != other.log_prob ? log_prob > other.log_prob : token < other.token;
  }
};

/// The k best of a row, best first: one pass that keeps a short sorted list, for the few that a beam asks for.
void best_few(const float* row, float log_sum, int64_t size, std::vector<Candidate>& best, int64_t k) {
  best.assign(static_cast<size_t>(k), {-std::numeric_limits<float>::infinity(), std::numeric_limits<int32_t>::max()});
  for (int64_t v = 0; v < size; ++v) {
    const Candidate candidate = {row[v] - log_sum, static_cast<int32_t>(v)};
    if (!(candidate < best.back())) continue;
    best.insert(std::lower_bound(best.begin(), best.end(), candidate), candidate);
    best.pop_back();
  }
}

void best_many(const float* row, float log_sum, int64_t size, std::vector<Candidate>& best, int64_t k) {
  best.clear();
  for (int64_t v = 0; v < size; ++v) best.push_back({row[v] - log_sum, static_cast<int32_t>(v)});
  std::partial_sort(best.begin(), best.begin() + k, best.end());
}

}  // namespace

BestTokens Logits::best(int64_t k) const {
  constexpr int64_t kFew = 64;
  const Tensor logits = logits_.to(at::kCPU).contiguous();
  const float* data = logits.const_data_ptr<float>();
  const int64_t size = vocab_size();
  BestTokens result = {k, std::vector<int32_t>(static_cast<size_t>(num_rows() * k)),
                       std::vector<float>(static_cast<size_t>(num_rows() * k))};
  at::parallel_for(0, num_rows(), 1, [&](int64_t begin, int64_t end) {
    std::vector<Candidate> best;
    for (int64_t i = begin; i < end; ++i) {
      const float* row = data + i * size;
      (k <= kFew ? best_few : best_many)(row, row_kernels<float>().log_sum_exp(row, size), size, best, k);
      for (int64_t j = 0; j < k; ++j) {
        result.tokens[static_cast<size_t>(i * k + j)] = best[static_cast<size_t>(j)].token;
        result.log_probs[static_cast<size_t>(i * k + j)] = best[static_cast<size_t>(j)].log_prob;
      }
    }
  });
  return result;
}

Tensor Logits::log_probs() const {
  const Tensor logits = logits_.to(at::kCPU).contiguous();
  const Tensor log_sums = at::empty({num_rows(), 1}, at::kFloat);
  at::parallel_for(0, num_rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      log_sums.mutable_data_ptr<float>()[i] =
          row_kernels<float>().log_sum_exp(logits.const_data_ptr<float>() + i * vocab_size(), vocab_size());
  });
  return logits - log_sums;
}

std::vector<float> Logits::of(const std::vector<int32_t>& tokens) const {
  const Tensor logits = logits_.to(at::kCPU).contiguous();
  std::vector<float> result(tokens.size());
  at::parallel_for(0, num_rows(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = logits.const_data_ptr<float>() + i * vocab_size();
      const auto at = static_cast<size_t>(i);
      result[at] = row[tokens[at]] - row_kernels<float>().log_sum_exp(row, vocab_size());
    }
  });
  return result;
}

}  // namespace lacuna

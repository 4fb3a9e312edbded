#include "model/logits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/device.h"
#include "base/error.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace {

struct Candidate {
  float log_prob;
  int32_t token;
  bool operator<(const Candidate& other) const {  // the better candidate is less: sorting puts the best first
    return log_prob != other.log_prob ? log_prob > other.log_prob : token < other.token;
  }
};

constexpr int64_t kRowsAtATime = 2 * kRowsRead;  // their logits, 1 MB for 8,000 tokens, stay in the L2 cache
constexpr int64_t kRowsPerTask = 8;
constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

/// One row of logits: `maxima` are those of each kMaximumOf of them.
struct Row {
  const float* logits;
  int64_t size;
  const std::vector<int32_t>* tokens;  // of the columns, ascending; null = all
  float log_sum;
  const std::vector<float>& maxima;

  int32_t token(int64_t column) const { return tokens == nullptr ? static_cast<int32_t>(column) : (*tokens)[static_cast<size_t>(column)]; }
  float log_prob_at(int64_t column) const { return logits[column] - log_sum; }
  float log_prob(int32_t token) const {
    if (tokens == nullptr) return log_prob_at(token);
    const auto found = std::lower_bound(tokens->begin(), tokens->end(), token);
    return found == tokens->end() || *found != token ? kLowest : log_prob_at(found - tokens->begin());
  }
};

/// Returns the k-th largest number, or minus infinity if there are fewer.
float kth_largest(const std::vector<float>& values, size_t k) {
  if (values.size() < k) return kLowest;
  std::vector<float> largest(k);
  std::partial_sort_copy(values.begin(), values.end(), largest.begin(), largest.end(), std::greater<>());
  return largest.back();
}

/// Calls f(i) for each of `count` numbers that is at least `bound` once `subtracted` is subtracted.
template <class F>
void for_those_at_least(const float* numbers, int64_t count, float subtracted, float bound, F f) {
  constexpr int64_t kBits = 64;
  for (int64_t begin = 0; begin < count; begin += kBits) {
    uint64_t bits = row_kernels<float>().at_least(numbers + begin, std::min(kBits, count - begin), subtracted, bound);
    for (; bits != 0; bits &= bits - 1) f(begin + std::countr_zero(bits));
  }
}

/// Finds the k best tokens, best first. At least k tokens reach the k-th largest block maximum, and most blocks have
/// none that does.
void find_best(const Row& row, int64_t k, std::vector<Candidate>& best) {
  best.clear();
  const float bound = kth_largest(row.maxima, static_cast<size_t>(k)) - row.log_sum;
  for_those_at_least(row.maxima.data(), static_cast<int64_t>(row.maxima.size()), row.log_sum, bound, [&](int64_t block) {
    const int64_t begin = block * kMaximumOf, count = std::min(row.size - begin, kMaximumOf);
    for_those_at_least(row.logits + begin, count, row.log_sum, bound, [&](int64_t i) {
      best.push_back({row.log_prob_at(begin + i), row.token(begin + i)});
    });
  });
  const auto possible = static_cast<size_t>(std::min(k, row.size));
  if (best.size() < possible) best.resize(possible, {kLowest, kNone});  // the logits are not numbers
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(possible), best.end());
  best.resize(possible, {kLowest, kNone});
  best.resize(static_cast<size_t>(k), {kLowest, 0});
}

void require_probabilities(bool are_numbers) {
  if (are_numbers) return;
  throw CheckpointError(
      "the model's probabilities are not numbers: its weights are damaged or its training diverged; use an earlier checkpoint");
}

}  // namespace

void require_number(float log_prob, int32_t token) {
  require_probabilities(!std::isnan(log_prob) && token != kNone);
}

void require_numbers(const Tensor& values) {
  require_probabilities(!values.isnan().any().item<bool>());
}

/// Calls f(i, row) for each row, on all threads.
template <class F>
void Logits::for_rows(F f) const {
  const int64_t at_a_time = projection_ && rows_.is_cpu() ? kRowsAtATime : std::max<int64_t>(1, num_rows());
  for (int64_t first = 0; first < num_rows(); first += at_a_time) {
    const Tensor given = rows_.narrow(0, first, std::min(at_a_time, num_rows() - first));
    const Tensor logits = (projection_ ? projection_->multiply(given, bias_) : given).to(at::kCPU, at::kFloat).contiguous();
    at::parallel_for(0, logits.size(0), kRowsPerTask, [&](int64_t begin, int64_t end) {
      std::vector<float> maxima;
      for (int64_t i = begin; i < end; ++i) {
        const float* const row = logits.const_data_ptr<float>() + i * logits.size(1);
        const auto* const tokens = tokens_.empty() ? nullptr : tokens_[static_cast<size_t>(first + i)].get();
        const int64_t size = tokens == nullptr ? logits.size(1) : static_cast<int64_t>(tokens->size());
        maxima.resize(static_cast<size_t>((size + kMaximumOf - 1) / kMaximumOf));
        f(static_cast<size_t>(first + i), Row{row, size, tokens, row_kernels<float>().log_sum_exp(row, size, maxima.data()), maxima});
      }
    });
  }
}

Logits Logits::only(const std::vector<int32_t>& rows) const {
  Logits chosen(rows_.index_select(0, tensor_of(rows, rows_.device())), projection_, bias_);
  chosen.vocab_size_ = vocab_size_;
  if (!tokens_.empty())
    for (const int32_t row : rows) chosen.tokens_.push_back(tokens_[static_cast<size_t>(row)]);
  return chosen;
}

BestTokens Logits::best(int64_t k, const std::vector<int32_t>& asked) const {
  const auto count = static_cast<size_t>(num_rows() * k);
  BestTokens result = {k, std::vector<int32_t>(count), std::vector<float>(count), std::vector<float>(asked.size())};
  for_rows([&](size_t i, const Row& row) {
    thread_local std::vector<Candidate> best;
    find_best(row, k, best);
    for (size_t j = 0, to = i * static_cast<size_t>(k); j < static_cast<size_t>(k); ++j, ++to) {
      result.tokens[to] = best[j].token;
      result.log_probs[to] = best[j].log_prob;
    }
    if (!asked.empty()) result.asked[i] = row.log_prob(asked[i]);
  });
  return result;
}

Tensor Logits::log_probs() const {
  Tensor result = at::full({num_rows(), vocab_size()}, kLowest, at::kFloat);
  float* const to = result.mutable_data_ptr<float>();
  for_rows([&](size_t i, const Row& row) {
    float* const of_row = to + static_cast<int64_t>(i) * vocab_size();
    for (int64_t column = 0; column < row.size; ++column) of_row[row.token(column)] = row.log_prob_at(column);
  });
  return result;
}

std::vector<float> Logits::of(const std::vector<int32_t>& tokens) const {
  std::vector<float> result(tokens.size());
  for_rows([&](size_t i, const Row& row) { result[i] = row.log_prob(tokens[i]); });
  return result;
}

}  // namespace lacuna

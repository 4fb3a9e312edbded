#include "model/logits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/buffer.h"
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
constexpr int32_t kNone = gpu::kNoToken;

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
  thread_local std::vector<float> largest;
  largest.resize(k);
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
void find_best_of(const Row& row, int64_t k, std::vector<Candidate>& best) {
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

Logits::Logits(const Tensor& rows, std::shared_ptr<const PackedWeight> projection, const Tensor& bias)
    : rows_(rows),
      num_rows_(rows.size(0)),
      columns_(rows.size(1)),
      projection_(std::move(projection)),
      bias_(bias.defined() ? bias.detach() : bias) {
  if (!rows_.is_cpu() || rows_.scalar_type() != at::kFloat || (projection_ && !projection_->is_copy())) return;
  rows_ = rows_.contiguous();
  memory_ = rows_.const_data_ptr<float>();
}

/// Returns `count` of the chosen rows, from number `first` on, end to end.
const float* Logits::rows_in_memory(const std::vector<int32_t>* chosen, int64_t first, int64_t count) const {
  if (chosen == nullptr) return memory_ + first * columns_;
  const int32_t* const rows = chosen->data() + first;
  if (rows[count - 1] - rows[0] == count - 1 && std::is_sorted(rows, rows + count)) return memory_ + rows[0] * columns_;
  thread_local Buffer<float> gathered;
  float* const to = gathered.of(count * columns_);
  for (int64_t i = 0; i < count; ++i) std::copy_n(memory_ + rows[i] * columns_, columns_, to + i * columns_);
  return to;
}

/// Returns the logits of the chosen rows (null = all), where the rows are.
Tensor Logits::logits_of(const std::vector<int32_t>* chosen) const {
  const Tensor rows = rows_.defined() ? rows_ : at::from_blob(const_cast<float*>(memory_), {num_rows_, columns_});
  const auto is_all_in_order = [&](const std::vector<int32_t>& some) {
    return std::ssize(some) == num_rows_ && std::ranges::adjacent_find(some, std::ranges::greater_equal()) == some.end();
  };
  const bool are_all = chosen == nullptr || is_all_in_order(*chosen);
  const Tensor given = are_all ? rows : rows.index_select(0, tensor_of(*chosen, rows.device()));
  return projection_ ? projection_->multiply(given, bias_) : given;
}

/// Calls f(i, row) for each of the chosen rows (null = all), on all threads.
template <class F>
void Logits::for_rows(const std::vector<int32_t>* chosen, F f) const {
  const int64_t count = chosen != nullptr ? std::ssize(*chosen) : num_rows_;
  const int64_t width = projection_ ? projection_->outputs() : columns_;
  const auto show = [&](const float* logits, int64_t first, int64_t num_rows) {
    at::parallel_for(0, num_rows, kRowsPerTask, [&](int64_t begin, int64_t end) {
      thread_local std::vector<float> maxima;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = chosen != nullptr ? (*chosen)[static_cast<size_t>(first + i)] : first + i;
        const auto* const tokens = tokens_.empty() ? nullptr : tokens_[static_cast<size_t>(row)].get();
        const float* const of_row = logits + i * width;
        const int64_t size = tokens == nullptr ? width : std::ssize(*tokens);
        maxima.resize(static_cast<size_t>((size + kMaximumOf - 1) / kMaximumOf));
        f(static_cast<size_t>(first + i), Row{of_row, size, tokens, row_kernels<float>().log_sum_exp(of_row, size, maxima.data()), maxima});
      }
    });
  };
  if (memory_ == nullptr) {
    const Tensor logits = logits_of(chosen).to(at::kCPU, at::kFloat).contiguous();
    return show(logits.const_data_ptr<float>(), 0, count);
  }
  thread_local Buffer<float> products;
  const float* const bias = bias_.defined() ? bias_.const_data_ptr<float>() : nullptr;
  for (int64_t first = 0; first < count; first += kRowsAtATime) {
    const int64_t num_rows = std::min(kRowsAtATime, count - first);
    const float* logits = rows_in_memory(chosen, first, num_rows);
    if (projection_) {
      float* const to = products.of(num_rows * width);
      projection_->multiply(logits, num_rows, bias, to);
      logits = to;
    }
    show(logits, first, num_rows);
  }
}

BestTokens Logits::best(int64_t k, const std::vector<int32_t>& asked) const {
  std::vector<int32_t> rows(static_cast<size_t>(num_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  BestTokens best;
  find_best(rows, k, asked, best);
  return best;
}

void Logits::find_best(const std::vector<int32_t>& rows, int64_t k, const std::vector<int32_t>& asked, BestTokens& best) const {
  if (k <= gpu::kMostBest && are_on_gpu()) return gpu::find_best(logits_of(&rows), k, asked, best);
  const auto each = static_cast<size_t>(k);
  best.k = k;
  best.tokens.resize(rows.size() * each);
  best.log_probs.resize(rows.size() * each);
  best.asked.resize(asked.size());
  for_rows(&rows, [&](size_t i, const Row& row) {
    thread_local std::vector<Candidate> found;
    find_best_of(row, k, found);
    for (size_t j = 0; j < each; ++j) {
      best.tokens[i * each + j] = found[j].token;
      best.log_probs[i * each + j] = found[j].log_prob;
    }
    if (!asked.empty()) best.asked[i] = row.log_prob(asked[i]);
  });
}

Tensor Logits::log_probs(const std::vector<int32_t>* rows) const {
  Tensor result = at::full({rows != nullptr ? std::ssize(*rows) : num_rows(), vocab_size()}, kLowest, at::kFloat);
  float* const to = result.mutable_data_ptr<float>();
  for_rows(rows, [&](size_t i, const Row& row) {
    float* const of_row = to + static_cast<int64_t>(i) * vocab_size();
    for (int64_t column = 0; column < row.size; ++column) of_row[row.token(column)] = row.log_prob_at(column);
  });
  return result;
}

std::vector<float> Logits::of(const std::vector<int32_t>& tokens) const {
  if (are_on_gpu()) {
    BestTokens best;
    gpu::find_best(logits_of(nullptr), 1, tokens, best);
    return std::move(best.asked);
  }
  std::vector<float> result(tokens.size());
  for_rows(nullptr, [&](size_t i, const Row& row) { result[i] = row.log_prob(tokens[i]); });
  return result;
}

}  // namespace lacuna

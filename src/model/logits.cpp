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

constexpr int64_t kRowsPerTask = 8;
constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Logits on the CPU, row by row.
class Rows {
 public:
  Rows(const Tensor& logits, const PanelSums& panel_sums, const std::vector<TokenSet>& tokens)
      : logits_(logits.to(at::kCPU).contiguous()), panel_sums_(panel_sums), tokens_(tokens) {}

  int64_t count() const { return logits_.size(0); }
  int64_t size(int64_t i) const { return tokens_.empty() ? logits_.size(1) : static_cast<int64_t>(tokens_of(i).size()); }
  const float* row(int64_t i) const { return logits_.const_data_ptr<float>() + i * logits_.size(1); }
  /// The token of a column of row i.
  int32_t token(int64_t i, int32_t column) const {
    return tokens_.empty() || column == kNone ? column : tokens_of(i)[static_cast<size_t>(column)];
  }
  /// log-probability of a token.
  float log_prob(int64_t i, int32_t token) const {
    if (tokens_.empty()) return row(i)[token] - log_sum(i);
    const auto found = std::lower_bound(tokens_of(i).begin(), tokens_of(i).end(), token);
    return found == tokens_of(i).end() || *found != token ? kImpossible : row(i)[found - tokens_of(i).begin()] - log_sum(i);
  }
  /// log of the sum of exp(row i).
  float log_sum(int64_t i) const {
    if (!has_panels()) return row_kernels<float>().log_sum_exp(row(i), size(i));
    return row_kernels<float>().log_sum_of_parts(maxima(i), panel_sums_.exp_sums.const_data_ptr<float>() + i * num_panels(), num_panels());
  }
  bool has_panels() const { return panel_sums_.width > 0; }
  int64_t num_panels() const { return panel_sums_.maxima.size(1); }
  int64_t panel_width() const { return panel_sums_.width; }
  const float* maxima(int64_t i) const { return panel_sums_.maxima.const_data_ptr<float>() + i * num_panels(); }

 private:
  const std::vector<int32_t>& tokens_of(int64_t i) const { return *tokens_[static_cast<size_t>(i)]; }

  Tensor logits_;
  const PanelSums& panel_sums_;
  const std::vector<TokenSet>& tokens_;
};

/// The k best tokens of a row, best first, in one pass that keeps a short sorted list: for the few that a beam asks for. Tokens come in
/// ascending order, so one whose logit is not above that of the list's last can't enter it.
class BestFew {
 public:
  BestFew(const float* row, float log_sum, std::vector<Candidate>& best, int64_t k) : row_(row), log_sum_(log_sum), best_(best) {
    best_.assign(static_cast<size_t>(k), {kImpossible, kNone});
  }

  void scan(int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      if (is_full() && (v = row_kernels<float>().find_above(row_, v, end, last_logit())) == end) return;
      const Candidate candidate = {row_[v] - log_sum_, static_cast<int32_t>(v)};
      if (!(candidate < best_.back())) continue;
      best_.insert(std::lower_bound(best_.begin(), best_.end(), candidate), candidate);
      best_.pop_back();
    }
  }

  /// The same over panels whose largest logits are known.
  void scan_panels(const float* maxima, int64_t panels, int64_t width, int64_t size) {
    for (int64_t p = 0; p < panels; ++p) {
      if (is_full() && (p = row_kernels<float>().find_above(maxima, p, panels, last_logit())) == panels) return;
      scan(p * width, std::min(size, (p + 1) * width));
    }
  }

 private:
  bool is_full() const { return best_.back().token != kNone; }
  float last_logit() const { return row_[best_.back().token]; }

  const float* row_;
  float log_sum_;
  std::vector<Candidate>& best_;
};

void find_best_few(const Rows& rows, int64_t i, std::vector<Candidate>& best, int64_t k) {
  BestFew few(rows.row(i), rows.log_sum(i), best, k);
  if (rows.has_panels()) {
    few.scan_panels(rows.maxima(i), rows.num_panels(), rows.panel_width(), rows.size(i));
  } else {
    few.scan(0, rows.size(i));
  }
}

void find_best_many(const Rows& rows, int64_t i, std::vector<Candidate>& best, int64_t k) {
  const float* row = rows.row(i);
  const float log_sum = rows.log_sum(i);
  best.clear();
  for (int64_t v = 0; v < rows.size(i); ++v) best.push_back({row[v] - log_sum, static_cast<int32_t>(v)});
  std::partial_sort(best.begin(), best.begin() + k, best.end());
}

}  // namespace

BestTokens Logits::best(int64_t k) const {
  constexpr int64_t kFew = 64;
  const Rows rows(logits_, panel_sums_, tokens_);
  const auto count = static_cast<size_t>(rows.count() * k);
  BestTokens result = {k, std::vector<int32_t>(count), std::vector<float>(count, kImpossible)};
  at::parallel_for(0, rows.count(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    std::vector<Candidate> best;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t possible = std::min(k, rows.size(i));
      (possible <= kFew ? find_best_few : find_best_many)(rows, i, best, possible);
      for (int64_t j = 0; j < possible; ++j) {
        result.tokens[static_cast<size_t>(i * k + j)] = rows.token(i, best[static_cast<size_t>(j)].token);
        result.log_probs[static_cast<size_t>(i * k + j)] = best[static_cast<size_t>(j)].log_prob;
      }
    }
  });
  return result;
}

Tensor Logits::log_probs() const {
  const Rows rows(logits_, panel_sums_, tokens_);
  Tensor result = at::full({rows.count(), vocab_size()}, kImpossible, at::kFloat);
  at::parallel_for(0, rows.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float log_sum = rows.log_sum(i);
      const float* const row = rows.row(i);
      float* const to = result.mutable_data_ptr<float>() + i * vocab_size();
      for (int32_t column = 0; column < rows.size(i); ++column) to[rows.token(i, column)] = row[column] - log_sum;
    }
  });
  return result;
}

std::vector<float> Logits::of(const std::vector<int32_t>& tokens) const {
  const Rows rows(logits_, panel_sums_, tokens_);
  std::vector<float> result(tokens.size());
  at::parallel_for(0, rows.count(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[static_cast<size_t>(i)] = rows.log_prob(i, tokens[static_cast<size_t>(i)]);
  });
  return result;
}

}  // namespace lacuna

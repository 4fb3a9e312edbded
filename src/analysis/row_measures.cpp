#include "analysis/row_measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lacuna {
namespace {

double minus_p_log_p(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

double entropy_of_distribution(std::span<const double> p) {
  double entropy = 0;
  for (const double one : p) entropy += minus_p_log_p(one);
  return entropy;
}

template <class T>
double entropy_of_magnitudes(std::span<const T> weights) {
  double sum = 0, sum_of_logs = 0;
  for (const T weight : weights) {
    const double p = std::abs(static_cast<double>(weight));
    if (!(p > 0)) continue;  // 0 or NaN
    sum += p;
    sum_of_logs += p * std::log(p);
  }
  return sum > 0 ? std::log(sum) - sum_of_logs / sum : 0;
}

int64_t pairs_of(int64_t count) {
  return count * (count - 1) / 2;
}

/// Counts pairs of `sorted` with the same key.
template <class T, class Key>
int64_t tied_pairs(const std::vector<T>& sorted, Key key) {
  int64_t pairs = 0;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    do ++end;
    while (end < sorted.size() && key(sorted[end]) == key(sorted[begin]));
    pairs += pairs_of(static_cast<int64_t>(end - begin));
  }
  return pairs;
}

/// Sorts by merging halves, and returns the number of pairs that stood with the larger value first. `room` is the buffer for merging.
int64_t sort_and_count_inversions(std::span<double> values, std::vector<double>& room) {
  if (values.size() < 2) return 0;
  const size_t half = values.size() / 2;
  int64_t inversions = sort_and_count_inversions(values.first(half), room) + sort_and_count_inversions(values.subspan(half), room);
  room.assign(values.begin(), values.begin() + static_cast<ptrdiff_t>(half));
  size_t next = 0;
  for (size_t left = 0, right = half; left < half;) {  // next <= right: nothing is written over before it is read
    if (right < values.size() && values[right] < room[left]) {
      inversions += static_cast<int64_t>(half - left);
      values[next++] = values[right++];
    } else {
      values[next++] = room[left++];
    }
  }
  return inversions;
}

}  // namespace

double entropy_of(std::span<const float> weights) {
  return entropy_of_magnitudes(weights);
}

double entropy_of(std::span<const double> weights) {
  return entropy_of_magnitudes(weights);
}

RowMeasures measure_row(std::span<const float> weights) {
  RowMeasures row;
  for (const float weight : weights) {
    row.visible += !std::isnan(weight);
    row.zeros += weight == 0;
  }
  row.entropy = entropy_of(weights);
  return row;
}

double HeadDivergence::operator()(std::span<const std::span<const float>> heads, std::optional<double> temperature) {
  mean_.assign(heads.front().size() + 1, 0);
  const double share = 1 / static_cast<double>(heads.size());
  double entropies = 0;
  for (const std::span<const float> row : heads) {
    const bool is_null = std::none_of(row.begin(), row.end(), [](float weight) { return std::abs(weight) > 0; });
    if (is_null)
      mean_.back() += share;
    else
      entropies += temperature ? add_softmax(row, *temperature, share) : add_scaled(row, share);
  }
  return std::max(0.0, entropy_of_distribution(mean_) - share * entropies);
}

/// Adds share * p to the mean; gives back H(p).
double HeadDivergence::add_scaled(std::span<const float> row, double share) {
  double sum = 0;
  for (const float weight : row)
    if (!std::isnan(weight)) sum += std::abs(static_cast<double>(weight));
  for (size_t j = 0; j < row.size(); ++j)
    if (!std::isnan(row[j])) mean_[j] += share * std::abs(static_cast<double>(row[j])) / sum;
  return entropy_of(row);
}

double HeadDivergence::add_softmax(std::span<const float> row, double temperature, double share) {
  double top = -INFINITY, sum = 0, sum_of_exponents = 0;
  for (const float weight : row)
    if (!std::isnan(weight)) top = std::max(top, temperature * static_cast<double>(weight));
  const auto exponent = [&](float weight) { return temperature * static_cast<double>(weight) - top; };
  for (const float weight : row) {
    if (std::isnan(weight)) continue;
    const double e = std::exp(exponent(weight));
    sum += e;
    sum_of_exponents += e * exponent(weight);
  }
  for (size_t j = 0; j < row.size(); ++j)
    if (!std::isnan(row[j])) mean_[j] += share * std::exp(exponent(row[j])) / sum;
  return std::log(sum) - sum_of_exponents / sum;
}

double js_divergence(std::span<const double> p, std::span<const double> q) {
  const double sum_p = std::accumulate(p.begin(), p.end(), 0.0), sum_q = std::accumulate(q.begin(), q.end(), 0.0);
  double divergence = 0;
  for (size_t j = 0; j < p.size(); ++j) {
    const double a = p[j] / sum_p, b = q[j] / sum_q;
    divergence += minus_p_log_p((a + b) / 2) - (minus_p_log_p(a) + minus_p_log_p(b)) / 2;
  }
  return std::max(0.0, divergence);
}

/// Knight's algorithm (1966), O(n log n): of positions sorted by x, then y, the inversions of y are those that y ranks the other way round.
std::optional<double> kendall_tau_b(std::span<const double> x, std::span<const double> y) {
  std::vector<std::pair<double, double>> points;
  points.reserve(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (!std::isnan(x[i]) && !std::isnan(y[i])) points.emplace_back(x[i], y[i]);
  std::sort(points.begin(), points.end());
  const int64_t pairs = pairs_of(std::ssize(points));
  const int64_t tied_both = tied_pairs(points, [](const auto& point) { return point; });
  const int64_t untied_x = pairs - tied_pairs(points, [](const auto& point) { return point.first; });
  std::vector<double> ranked, room;
  ranked.reserve(points.size());
  for (const auto& point : points) ranked.push_back(point.second);
  const int64_t discordant = sort_and_count_inversions(ranked, room);
  const int64_t untied_y = pairs - tied_pairs(ranked, [](double value) { return value; });
  if (untied_x == 0 || untied_y == 0) return {};
  const int64_t untied = untied_x + untied_y - pairs + tied_both;  // in both
  return static_cast<double>(untied - 2 * discordant) / std::sqrt(static_cast<double>(untied_x) * static_cast<double>(untied_y));
}

}  // namespace lacuna

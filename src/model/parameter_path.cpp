#include "model/parameter_path.h"

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace lacuna {

uint64_t ParameterPath::key() const {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (const char c : name_) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return random_key(seed_, RandomUse::kInitialize, 0, hash);
}

namespace {

/// Returns a matrix without values; while UndrawnWeights live, without memory but for one number, which all its places share.
Tensor undrawn(int64_t rows, int64_t columns) {
  return UndrawnWeights::is_alive() ? at::empty_strided({rows, columns}, {0, 0}, at::kFloat) : at::empty({rows, columns}, at::kFloat);
}

}  // namespace

Tensor stacked_xavier_uniform(int64_t count, int64_t rows, int64_t columns, double gain, const ParameterPath& path) {
  Tensor weight = undrawn(count * rows, columns);
  if (UndrawnWeights::is_alive()) return weight;
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(rows + columns));
  RandomStream random(path.key());
  float* data = weight.data_ptr<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) data[i] = static_cast<float>(bound * (2 * random.next_unit() - 1));
  return weight;
}

Tensor normal(int64_t rows, int64_t columns, double standard_deviation, const ParameterPath& path) {
  Tensor weight = undrawn(rows, columns);
  if (UndrawnWeights::is_alive()) return weight;
  RandomStream random(path.key());
  float* data = weight.data_ptr<float>();
  for (int64_t i = 0; i < weight.numel(); ++i) {  // Box & Muller
    const double radius = std::sqrt(-2 * std::log(1 - random.next_unit())), angle = 2 * std::numbers::pi * random.next_unit();
    data[i] = static_cast<float>(standard_deviation * radius * std::cos(angle));
  }
  return weight;
}

}  // namespace lacuna

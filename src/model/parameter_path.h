#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace lacuna {

using at::Tensor;

/// The name of a module or parameter and the seed of the run: together the key of its initial weights, which therefore
/// depend on nothing else in the model: adding a layer does not change those of the others.
class ParameterPath {
 public:
  explicit ParameterPath(uint64_t seed, std::string name = {}) : seed_(seed), name_(std::move(name)) {}
  ParameterPath operator/(const std::string& part) const { return ParameterPath(seed_, name_.empty() ? part : name_ + "." + part); }
  /// Returns the key of the random numbers for this name.
  uint64_t key() const;

 private:
  uint64_t seed_;
  std::string name_;
};

/// Leaves matrices that are created on this thread without values and without memory while an instance lives: for a model that is given
/// others next.
class UndrawnWeights {
 public:
  UndrawnWeights() : outer_(is_alive_) { is_alive_ = true; }
  ~UndrawnWeights() { is_alive_ = outer_; }
  UndrawnWeights(const UndrawnWeights&) = delete;
  UndrawnWeights& operator=(const UndrawnWeights&) = delete;
  static bool is_alive() { return is_alive_; }

 private:
  static inline thread_local bool is_alive_ = false;
  bool outer_;
};

/// Returns `count` matrices [rows, columns], stacked to [count * rows, columns] and drawn uniformly from ±gain sqrt(6 /
/// (rows + columns)) (Glorot & Bengio 2010).
Tensor stacked_xavier_uniform(int64_t count, int64_t rows, int64_t columns, double gain, const ParameterPath& path);
/// Returns a matrix [rows, columns] drawn from the normal distribution with mean 0 and this standard deviation.
Tensor normal(int64_t rows, int64_t columns, double standard_deviation, const ParameterPath& path);

}  // namespace lacuna

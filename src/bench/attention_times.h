#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/attention_op.h"

/// The attention operation alone, forward and backward, timed.
namespace lacuna {

/// A type with a pattern, and what these are called.
struct TypeWithPattern {
  std::string type, pattern;
  ConfigNode attention;
};

/// True if the attention core takes tensors of the shape's dtype on its device.
bool core_takes(const AttentionShape& shape);

/// A line for each entry, medians over `rounds`: of the entry itself, of softmax and of ATen's softmax on the same scores. `zeros`: the
/// share of weights that are to be zero, on scores of the entry's own (sparse_scores.h); 0 = standard normal q and k.
std::vector<nlohmann::ordered_json> attention_times(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, double zeros,
                                                    int64_t rounds);

}  // namespace lacuna

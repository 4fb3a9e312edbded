#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/attention_op.h"

/// Timing of the attention operation alone, forward and backward.
namespace lacuna {

/// A type with a pattern, and their names.
struct TypeWithPattern {
  std::string type, pattern;
  ConfigNode attention;
};

/// True if the attention core takes tensors of the shape's dtype on its device.
bool core_takes(const AttentionShape& shape);

/// Returns a line for each entry with the median times, over `rounds`, of the entry, of softmax and of ATen's softmax on the same scores.
/// `zeros` is the share of weights to be zero, on scores made for the entry (sparse_scores.h); 0 = standard normal q and k.
std::vector<nlohmann::ordered_json> attention_times(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, double zeros,
                                                    int64_t rounds);

}  // namespace lacuna

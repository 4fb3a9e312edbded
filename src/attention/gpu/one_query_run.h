#pragma once

#include <vector>

#include "attention/attention.h"
#include "kernels/rotation.h"

/// Attention of one query a row on a GPU, as in a step of a decoder, without gradients: nothing is copied to the GPU.
namespace lacuna::cuda {

/// The keys that the query at each position sees among those up to its own, on a device: a type's patterns, for so many positions.
struct PatternTable {
  Tensor segments;  ///< [segments, 3] int32: as KeySegment
  Tensor first;     ///< [patterns * positions + 1] int32: where each pattern's and position's begin
  int64_t positions = 0;
  bool has_patterns_of_heads = false;
};
/// Returns the table of a type; without positions if every query sees all keys.
PatternTable pattern_table(const AttentionType& type, int64_t num_heads, int64_t positions, at::Device device);

/// N queries, on their device. All rows are float or all are bf16, contiguous over d; counts are int32, and numbers float.
struct OneQueryStep {
  const AttentionType* type = nullptr;
  double scale = 1;
  Tensor q;                     ///< [N, H, d]
  Tensor k, v;                  ///< [Tk, H, d]
  Tensor new_k, new_v;          ///< [N, H, d] of each query's newest key, which is written to its row of k and v; undefined = all are there
  std::vector<Tensor> numbers;  ///< learned numbers that the type takes for each row, [H] or [N, H] each
  Tensor num_keys;              ///< [N]; a query stands at the newest key
  int64_t most_keys = 0;        ///< the largest of these
  Tensor first_key;             ///< [N]: query i sees rows of k from first_key[i] on; undefined where there are slots
  Tensor slots;                 ///< [N, S >= most_keys]: query i sees rows slots[i, 0], slots[i, 1], ... of k
  const PatternTable* patterns = nullptr;  ///< null = it sees all of them
  const Rotation* rotation = nullptr;      ///< by which queries and newest keys are turned, at the query's position; null = none
};

/// Returns true if there is a kernel for queries like `q` [N, H, d] (or another tensor of its device and type).
bool takes_one_query(const AttentionType& type, const Tensor& q);

/// Returns the context [N, H, d]. A row has the same bits whatever other rows there are.
Tensor run_one_query(const OneQueryStep& step);

}  // namespace lacuna::cuda

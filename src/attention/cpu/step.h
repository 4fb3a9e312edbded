#pragma once

#include <cstdint>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/task.h"

namespace lacuna {

/// Queries of B sentences on plain memory, without gradients: what a decoder's step asks. A query's context has the same
/// bits whatever other queries there are. Where keys are named by slots, each sentence has one query.
struct StepCall {
  const AttentionType* type = nullptr;
  double scale = 1;
  bool causal = false;
  int64_t d_head = 0;
  core::HeadSteps heads = {};                  ///< how many, and how far apart
  core::Rows<const float> q, k, v;             ///< of the first head
  core::Rows<const float> numbers = {};        ///< learned numbers of each query (stride 0 = all share them); null = none
  float* context = nullptr;                    ///< [Tq, H, d_head], written
  const std::vector<int32_t>& queries;         ///< [B + 1]: the first query of each sentence, and how many there are
  const std::vector<int32_t>& first_position;  ///< [B] position of each sentence's first query; empty = 0 for all
  const KeyRange& keys;                        ///< B ranges of rows of k and v
  AttentionProbe* probe = nullptr;             ///< sees every weight, if keys are not named by slots; null = none
  int layer = 0;                               ///< with site: what the probe is told
  AttentionSite site = AttentionSite::kCross;
};

/// Computes the context, on all threads, in memory that each of them keeps.
void run_step(const StepCall& call);

}  // namespace lacuna

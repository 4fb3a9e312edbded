#pragma once

#include <vector>

#include "attention/attention.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/dropout.h"

/// Questions about an AttentionCall that the cores and the reference share.
namespace lacuna {

/// The gradients of a call's inputs.
struct AttentionGradients {
  Tensor q, k, v;
  std::vector<Tensor> numbers;
  Tensor packed = {};  ///< if the call's parts are packed: k and v, or q, k and v, are its parts
};

/// Allocates the gradients of a call's q, k and v. Those of k and v are sums: zeros, or `uncleared` memory.
AttentionGradients allocate_gradients(const AttentionCall& call, bool uncleared);

/// Throws ShapeError if the parts of the call do not fit together.
void check_shapes(const AttentionCall& call);

/// Returns the position of query i of sentence b.
int32_t query_position(const AttentionCall& call, int64_t b, int32_t i);

/// Sets `segments` to the keys that the query at `position` of sentence b sees.
void visible_keys(const AttentionCall& call, int64_t b, int64_t head, int32_t position, std::vector<KeySegment>& segments);

/// Returns true if two sentences of queries see the same rows of k.
bool shares_keys(const KeyRange& keys);
/// Returns true if the sentences' keys are all `rows` rows of k, in the order of the sentences.
bool covers_in_order(const KeyRange& keys, int64_t rows);

/// Removes from the segments all keys that are more than `reach` positions away from `position`.
void keep_near(int32_t position, int32_t reach, std::vector<KeySegment>& segments);
/// Returns the key of the random numbers of the call's dropout.
uint64_t dropout_call_key(const AttentionCall& call, const ForwardContext& context);

/// Returns the dropout of one sentence and head; inactive unless in training.
AttentionDropout dropout_of(const AttentionCall& call, const ForwardContext& context, int64_t b, int64_t head);

/// Returns true if a probe wants the weights of this call.
bool is_probed(const AttentionCall& call, const ForwardContext& context);

}  // namespace lacuna

#include "attention/gpu/flash.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "attention/registry.h"
#include "base/device.h"

namespace lacuna::cuda {
namespace {

/// Asks LibTorch for deterministic kernels, for flash attention only: elsewhere, cuBLAS would ask for a workspace of its own. What is
/// allocated meanwhile is not filled with NaN, as it is by default: each tensor would take a launch.
class Deterministic {
 public:
  Deterministic() {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }
  ~Deterministic() {
    at::globalContext().setDeterministicAlgorithms(before_, warns_only_);
    at::globalContext().setDeterministicFillUninitializedMemory(fills_);
  }
  Deterministic(const Deterministic&) = delete;
  Deterministic& operator=(const Deterministic&) = delete;

 private:
  bool before_ = at::globalContext().deterministicAlgorithms(), warns_only_ = at::globalContext().deterministicAlgorithmsWarnOnly(),
       fills_ = at::globalContext().deterministicFillUninitializedMemory();
};

FlashResults forward_of_libtorch(const FlashInputs& in) {
  auto [context, log_sums, random_state, random_offset, mask] =
      at::_flash_attention_forward(in.q, in.k, in.v, in.query_offsets, in.key_offsets, in.most_queries, in.most_keys, /*dropout_p=*/0,
                                   in.causal, /*return_debug_mask=*/false, in.scale);
  return {context, log_sums, random_state, random_offset};
}

std::array<Tensor, 3> backward_of_libtorch(const FlashInputs& in, const FlashResults& results, const Tensor& context_gradient) {
  const Deterministic deterministic;
  auto [of_q, of_k, of_v] = at::_flash_attention_backward(context_gradient, in.q, in.k, in.v, results.context, results.log_sums,
                                                          in.query_offsets, in.key_offsets, in.most_queries, in.most_keys, /*dropout_p=*/0,
                                                          in.causal, results.random_state, results.random_offset, in.scale);
  return {of_q, of_k, of_v};
}

/// The rows of some sentences, one after the other, and where each begins among them.
struct Packed {
  std::vector<int64_t> rows;
  std::vector<int32_t> offsets = {0};
  int64_t most = 0;

  void add(int32_t begin, int32_t count) {
    for (int32_t i = 0; i < count; ++i) rows.push_back(begin + i);
    offsets.push_back(static_cast<int32_t>(rows.size()));
    most = std::max<int64_t>(most, count);
  }
  /// Has `there` set to the rows, unless they are all `count`, in order.
  void add_selection(int64_t count, Upload& upload, Tensor& there) const {
    const bool are_all = static_cast<int64_t>(rows.size()) == count && std::is_sorted(rows.begin(), rows.end());
    if (!are_all) upload.add(rows, there);
  }
};

Tensor selected(const Tensor& tensor, const Tensor& rows) {
  return rows.defined() ? tensor.index_select(0, rows) : tensor;
}
void put(const Tensor& values, const Tensor& rows, Tensor& to) {
  rows.defined() ? to.index_copy_(0, rows, values) : to.copy_(values);
}

}  // namespace

const FlashKernels& libtorch_flash() {
  static const FlashKernels kernels = {forward_of_libtorch, backward_of_libtorch};
  return kernels;
}

bool flash_takes(const AttentionCall& call, const ForwardContext& context) {
  const int64_t d = call.q.size(2);
  const bool is_softmax = call.type->is_row_map() && std::string(call.type->entry().name) == "softmax";
  const bool shows_all = call.type->has_one_pattern() && call.type->pattern(0).shows_every_key();
  const bool drops = context.training && call.dropout > 0;
  // Which keys a causal tile skips depends on its queries: so may, in the last bit, what the others in it get.
  const bool varies = call.rows_alike && call.causal;
  return is_softmax && shows_all && !drops && !varies && call.q.scalar_type() == at::kBFloat16 && d % 8 == 0 && d <= 256 &&
         !shares_keys(*call.keys);
}

bool flash_takes_sentence(const AttentionCall& call, int64_t b) {
  const int32_t queries = call.queries->length(b), keys = call.keys->count[static_cast<size_t>(b)];
  const bool ends_with_the_last_key = query_position(call, b, 0) + queries == keys;
  return queries > 0 && keys >= kLeastFlashKeys && (!call.causal || ends_with_the_last_key);
}

void FlashSentences::take(const AttentionCall& call, const std::vector<int32_t>& sentences, Upload& upload) {
  Packed queries, keys;
  for (const int32_t b : sentences) {
    queries.add(call.queries->begin(b), call.queries->length(b));
    keys.add(call.keys->begin[static_cast<size_t>(b)], call.keys->count[static_cast<size_t>(b)]);
  }
  queries.add_selection(call.q.size(0), upload, query_rows_);
  keys.add_selection(call.k.size(0), upload, key_rows_);
  upload.add(queries.offsets, query_offsets_);
  upload.add(keys.offsets, key_offsets_);
  most_queries_ = queries.most;
  most_keys_ = keys.most;
}

FlashInputs FlashSentences::inputs_of(const AttentionCall& call) const {
  return {.q = selected(call.q, query_rows_),
          .k = selected(call.k, key_rows_),
          .v = selected(call.v, key_rows_),
          .query_offsets = query_offsets_,
          .key_offsets = key_offsets_,
          .most_queries = most_queries_,
          .most_keys = most_keys_,
          .causal = call.causal,
          .scale = call.scale};
}

FlashResults FlashSentences::forward(const FlashKernels& kernels, const AttentionCall& call, Tensor& context) const {
  FlashResults results = kernels.forward(inputs_of(call));
  if (query_rows_.defined()) {
    context.index_copy_(0, query_rows_, results.context);
  } else {
    context = results.context.detach();  // as another tensor: what autograd gets as a node's result, the node must not keep
  }
  return results;
}

void FlashSentences::backward(const FlashKernels& kernels, const AttentionCall& call, const FlashResults& results,
                              const Tensor& context_gradient, AttentionGradients& gradients) const {
  const auto [of_q, of_k, of_v] = kernels.backward(inputs_of(call), results, selected(context_gradient, query_rows_));
  put(of_q, query_rows_, gradients.q);
  put(of_k, key_rows_, gradients.k);
  put(of_v, key_rows_, gradients.v);
}

}  // namespace lacuna::cuda

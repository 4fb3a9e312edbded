#pragma once

#include <array>

#include "attention/call.h"
#include "base/upload.h"

/// Softmax over long rows by flash attention (Dao 2023, arXiv:2307.08691), whose kernels LibTorch brings. They take sentences of any length
/// that stand end to end, and keep no row of scores.
namespace lacuna::cuda {

/// Sentences that flash attention works on at once: q [Tq, H, d], k and v [Tk, H, d], of theirs alone.
struct FlashInputs {
  Tensor q, k, v;
  Tensor query_offsets, key_offsets;  ///< int32 [sentences + 1], on the device
  int64_t most_queries, most_keys;    ///< of a sentence
  bool causal;                        ///< the last query sees every key, the one before all but the last
  double scale;
};

/// What the forward pass leaves to the backward pass.
struct FlashResults {
  Tensor context;                      ///< [Tq, H, d]
  Tensor log_sums;                     ///< float [H, Tq]
  Tensor random_state, random_offset;  ///< of dropout, which is not asked for: only handed back
};

/// The two passes. Tests put others in the place of LibTorch's.
struct FlashKernels {
  FlashResults (*forward)(const FlashInputs& inputs);
  /// Returns the gradients of q, k and v.
  std::array<Tensor, 3> (*backward)(const FlashInputs& inputs, const FlashResults& results, const Tensor& context_gradient);
};

/// Returns LibTorch's, which run on a GPU. Their backward pass is deterministic.
const FlashKernels& libtorch_flash();

/// The fewest keys of a sentence that are worth it: its tiles are 128 keys wide.
inline constexpr int32_t kLeastFlashKeys = 96;

/// Returns true if flash attention computes what the call asks for: softmax in bf16, every key seen, no weight dropped. Which of its
/// sentences go that way is for flash_takes_sentence() to say.
bool flash_takes(const AttentionCall& call, const ForwardContext& context);
/// Returns true for sentence b of such a call.
bool flash_takes_sentence(const AttentionCall& call, int64_t b);

/// The sentences of a call that flash attention takes.
class FlashSentences {
 public:
  /// `sentences`: their numbers, ascending. Must stay where it is until the upload is sent.
  void take(const AttentionCall& call, const std::vector<int32_t>& sentences, Upload& upload);

  bool empty() const { return most_queries_ == 0; }
  /// Writes the rows of `context` [Tq, H, d] that belong to these sentences.
  FlashResults forward(const FlashKernels& kernels, const AttentionCall& call, Tensor& context) const;
  /// Writes the rows of the gradients that belong to these sentences.
  void backward(const FlashKernels& kernels, const AttentionCall& call, const FlashResults& results, const Tensor& context_gradient,
                AttentionGradients& gradients) const;

 private:
  FlashInputs inputs_of(const AttentionCall& call) const;

  Tensor query_rows_, key_rows_;  // int64, of the call's tensors; undefined = all
  Tensor query_offsets_, key_offsets_;
  int64_t most_queries_ = 0, most_keys_ = 0;
};

}  // namespace lacuna::cuda

#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lacuna {

enum class AttentionSite { kEncoderSelf, kDecoderSelf, kCross };
inline constexpr AttentionSite kAttentionSites[] = {AttentionSite::kEncoderSelf, AttentionSite::kDecoderSelf, AttentionSite::kCross};
/// Returns `encoder_self`, `decoder_self` or `cross`.
const char* name_of(AttentionSite site);

/// Looks at the weights of attention: attach one to ForwardContext::probe. Called for each query, possibly from several
/// threads at once.
class AttentionProbe {
 public:
  virtual ~AttentionProbe() = default;
  /// Receives one row. weights [n]: those of a query over the keys that its pattern shows it, before dropout;
  /// key_positions [n]: which keys these are; sentence: the index in the batch; query: the position in the sentence.
  virtual void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
                   std::span<const int32_t> key_positions) = 0;
  /// Called right after `see` of the same row by attention that changes the weights of a base by a mask: original [n],
  /// the base's weights, and mask [n].
  virtual void see_original(int /*layer*/, AttentionSite /*site*/, int /*head*/, int64_t /*sentence*/, int64_t /*query*/,
                            std::span<const float> /*original*/, std::span<const float> /*mask*/,
                            std::span<const int32_t> /*key_positions*/) {}
  /// Called once for each wanted call, after all its rows were shown, from one thread.
  virtual void end_call(int /*layer*/, AttentionSite /*site*/) {}
  /// Receives a learned number of this place, once a call, before the rows. name: what its type calls it; values [H]:
  /// the number, or its mean over queries where each has its own.
  virtual void see_number(int /*layer*/, AttentionSite /*site*/, const std::string& /*name*/, std::span<const double> /*values*/) {}
  /// Returns true if rows and numbers of this place are wanted. Asked in each call, so that a probe can sample.
  virtual bool wants(int /*layer*/, AttentionSite /*site*/) const { return true; }
};

}  // namespace lacuna

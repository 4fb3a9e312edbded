#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lacuna {

enum class AttentionSite { kEncoderSelf, kDecoderSelf, kCross };
inline constexpr AttentionSite kAttentionSites[] = {AttentionSite::kEncoderSelf, AttentionSite::kDecoderSelf, AttentionSite::kCross};
/// `encoder_self`, `decoder_self` or `cross`.
const char* name_of(AttentionSite site);

/// Attach one to ForwardContext::probe to look at attention. Called for each query row, possibly from several threads at once.
class AttentionProbe {
 public:
  virtual ~AttentionProbe() = default;
  /// weights [n]: of one query over the keys its pattern shows it, before dropout; key_positions [n]: which keys these are. `sentence` is
  /// the index in the batch, `query` the position in the sentence.
  virtual void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
                   std::span<const int32_t> key_positions) = 0;
  /// For calibrated attention, right after `see` of the same row: original [n], the weights before calibration, and mask [n].
  virtual void see_calibration(int /*layer*/, AttentionSite /*site*/, int /*head*/, int64_t /*sentence*/, int64_t /*query*/,
                               std::span<const float> /*original*/, std::span<const float> /*mask*/,
                               std::span<const int32_t> /*key_positions*/) {}
  /// Called once for each wanted call, after all its rows were shown, from one thread.
  virtual void end_call(int /*layer*/, AttentionSite /*site*/) {}
  /// values [H]: a learned number of this place, by the name its type has for it (its mean over queries, where each has its own). Once a
  /// call, before the rows.
  virtual void see_number(int /*layer*/, AttentionSite /*site*/, const std::string& /*name*/, std::span<const double> /*values*/) {}
  /// True if rows and numbers of this place are wanted: asked in each call, so that looking can be sampled.
  virtual bool wants(int /*layer*/, AttentionSite /*site*/) const { return true; }
};

}  // namespace lacuna

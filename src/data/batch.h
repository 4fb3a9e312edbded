#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ragged_shape.h"
#include "text/vocabulary.h"

namespace lacuna {

/// One micro-batch of sentence pairs, ragged on both sides. Every source and every target ends in eos.
struct Batch {
  std::vector<TokenId> src, tgt;        ///< [Ts], [Tt]
  RaggedShapePtr src_shape, tgt_shape;  ///< B sentences each, the same ids on both sides
  int64_t src_tokens() const { return static_cast<int64_t>(src.size()); }
  int64_t tgt_tokens() const { return static_cast<int64_t>(tgt.size()); }
};

/// The position of a batch in the data, which is all that resuming needs: a batch is a pure function of (corpora, seed, position).
struct DataPosition {
  int64_t epoch = 0;  ///< full passes completed
  int64_t batch = 0;  ///< batches of this epoch already consumed
  bool operator==(const DataPosition&) const = default;
};

/// The endless stream of training batches, made ahead by a background thread.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// Returns the next batch and waits for it if necessary. Afterwards `position()` is that of the batch after it.
  virtual std::shared_ptr<const Batch> next() = 0;
  virtual DataPosition position() const = 0;
  /// True if the last batch returned was the last of its epoch.
  virtual bool at_epoch_end() const = 0;
  /// Seconds that `next` has waited for data so far.
  virtual double seconds_waited() const = 0;
};

}  // namespace lacuna

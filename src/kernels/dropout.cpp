#include "kernels/dropout.h"

#include <cmath>

#include "base/random.h"

namespace lacuna {

DropoutRows Dropout::rows() const {
  DropoutRows rows;
  rows.threshold = static_cast<uint32_t>(std::lround(rate * 65536));
  if (rows.threshold == 0) return rows;
  rows.key = key;
  rows.scale = 65536.0 / (65536.0 - rows.threshold);
  rows.offsets = shape->offsets().data();
  rows.ids = shape->ids().data();
  rows.sentences = shape->num_sentences();
  return rows;
}

Tensor dropout_factors(const Dropout& dropout, int64_t columns, const at::TensorOptions& options) {
  const DropoutRows rows = dropout.rows();
  if (rows.threshold == 0) return at::ones({dropout.shape ? dropout.shape->num_tokens() : 1, columns}, options);
  const Tensor factors = at::empty({dropout.shape->num_tokens(), columns}, at::kDouble);
  double* out = factors.data_ptr<double>();
  for (int64_t b = 0; b < rows.sentences; ++b)
    for (int32_t position = 0; position < dropout.shape->length(b); ++position)
      for (int64_t feature = 0; feature < columns; ++feature) {
        const uint64_t block = static_cast<uint64_t>(feature / 128 * 16 + feature % 16);
        const PhiloxBlock bits = philox(rows.key, static_cast<uint64_t>(position) << 32 | block, static_cast<uint64_t>(rows.ids[b]));
        const int64_t half = feature % 128 / 16;
        const uint32_t decision = half % 2 == 0 ? bits.word[half / 2] & 0xffff : bits.word[half / 2] >> 16;
        *out++ = decision >= rows.threshold ? rows.scale : 0;
      }
  return factors.to(options);
}

}  // namespace lacuna

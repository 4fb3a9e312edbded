#include "attention/dropout.h"

#include <cmath>

#include "base/random.h"

namespace lacuna {

AttentionDropout::AttentionDropout(double rate, uint64_t call_key, int64_t head, int64_t sentence_id)
    : key_(mix(mix(call_key, static_cast<uint64_t>(head)), static_cast<uint64_t>(sentence_id))),
      threshold_(static_cast<uint32_t>(std::llround(rate * 0x1p24))),
      scale_(1 / (1 - rate)) {}

namespace {

template <class S>
void draw(uint64_t key, uint32_t threshold, S scale, int32_t query, int32_t begin, int32_t count, int32_t stride, S* factors) {
  PhiloxBlock block{};
  int32_t drawn = -1;  // the block holds the numbers of keys 4 drawn to 4 drawn + 3
  for (int32_t j = 0, key_position = begin; j < count; ++j, key_position += stride) {
    if (key_position / 4 != drawn) {
      drawn = key_position / 4;
      block = philox(key, (static_cast<uint64_t>(query) << 32) | static_cast<uint32_t>(drawn), 0);
    }
    factors[j] = (block.word[key_position % 4] >> 8) < threshold ? S(0) : scale;
  }
}

}  // namespace

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, float* factors) const {
  draw(key_, threshold_, static_cast<float>(scale_), query, begin, count, stride, factors);
}

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, double* factors) const {
  draw(key_, threshold_, scale_, query, begin, count, stride, factors);
}

}  // namespace lacuna

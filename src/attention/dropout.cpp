#include "attention/dropout.h"

#include <cmath>

#include "base/random.h"

namespace lacuna {

AttentionDropout::AttentionDropout(double rate, uint64_t call_key, int64_t head, int64_t sentence_id)
    : key_(mix(mix(call_key, static_cast<uint64_t>(head)), static_cast<uint64_t>(sentence_id))),
      threshold_(static_cast<uint32_t>(std::llround(rate * 0x1p24))),
      scale_(1 / (1 - rate)) {}

namespace {

/// position_of(j) for j < count: the keys' positions.
template <class S, class PositionOf>
void draw(uint64_t key, uint32_t threshold, S scale, int32_t query, int32_t count, PositionOf position_of, S* factors) {
  PhiloxBlock block{};
  int32_t drawn = -1;  // the block holds the numbers of keys 4 drawn to 4 drawn + 3
  for (int32_t j = 0; j < count; ++j) {
    const int32_t key_position = position_of(j);
    if (key_position / 4 != drawn) {
      drawn = key_position / 4;
      block = philox(key, (static_cast<uint64_t>(query) << 32) | static_cast<uint32_t>(drawn), 0);
    }
    factors[j] = (block.word[key_position % 4] >> 8) < threshold ? S(0) : scale;
  }
}

}  // namespace

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, float* factors) const {
  draw(
      key_, threshold_, static_cast<float>(scale_), query, count, [=](int32_t j) { return begin + j * stride; }, factors);
}

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, double* factors) const {
  draw(
      key_, threshold_, scale_, query, count, [=](int32_t j) { return begin + j * stride; }, factors);
}

void AttentionDropout::factors(int32_t query, const int32_t* positions, int32_t count, float* factors) const {
  draw(
      key_, threshold_, static_cast<float>(scale_), query, count, [=](int32_t j) { return positions[j]; }, factors);
}

void AttentionDropout::factors(int32_t query, const int32_t* positions, int32_t count, double* factors) const {
  draw(
      key_, threshold_, scale_, query, count, [=](int32_t j) { return positions[j]; }, factors);
}

}  // namespace lacuna

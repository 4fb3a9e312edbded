#include "attention/rows/dropout.h"

namespace lacuna {

AttentionDropout::AttentionDropout(double rate, uint64_t call_key, int64_t head, int64_t sentence_id)
    : rule_{dropout_key(call_key, head, sentence_id), dropout_threshold(rate)}, scale_(1 / (1 - rate)) {}

namespace {

/// Sets factors [count]; position_of(j) is the position of key j.
template <class S, class PositionOf>
void draw(const DropoutRule& rule, S scale, int32_t query, int32_t count, PositionOf position_of, S* factors) {
  PhiloxBlock block{};
  int32_t drawn = -1;  // the block holds the numbers of keys 4 drawn to 4 drawn + 3
  for (int32_t j = 0; j < count; ++j) {
    const int32_t key_position = position_of(j);
    if (key_position / 4 != drawn) {
      drawn = key_position / 4;
      block = rule.draw(query, key_position);
    }
    factors[j] = rule.drops(block, key_position) ? S(0) : scale;
  }
}

}  // namespace

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, float* factors) const {
  draw(
      rule_, static_cast<float>(scale_), query, count, [=](int32_t j) { return begin + j * stride; }, factors);
}

void AttentionDropout::factors(int32_t query, int32_t begin, int32_t count, int32_t stride, double* factors) const {
  draw(
      rule_, scale_, query, count, [=](int32_t j) { return begin + j * stride; }, factors);
}

void AttentionDropout::factors(int32_t query, const int32_t* positions, int32_t count, float* factors) const {
  draw(
      rule_, static_cast<float>(scale_), query, count, [=](int32_t j) { return positions[j]; }, factors);
}

void AttentionDropout::factors(int32_t query, const int32_t* positions, int32_t count, double* factors) const {
  draw(
      rule_, scale_, query, count, [=](int32_t j) { return positions[j]; }, factors);
}

}  // namespace lacuna

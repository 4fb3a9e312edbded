#include "data/random_batch.h"

#include <algorithm>

#include "base/random.h"
#include "data/batch_maker.h"

namespace lacuna {
namespace {

std::vector<TokenId> random_sentence(int64_t length, int64_t pieces, RandomStream& random) {
  constexpr TokenId kFirst = kEos + 1;  // the first token that sentences may contain
  std::vector<TokenId> sentence;
  for (int64_t i = 1; i < length; ++i)
    sentence.push_back(kFirst + static_cast<TokenId>(random.next_below(static_cast<uint64_t>(pieces - kFirst))));
  sentence.push_back(kEos);
  return sentence;
}

}  // namespace

std::shared_ptr<const Batch> random_batch(const RandomBatch& wanted) {
  RandomStream random(random_key(wanted.seed, RandomUse::kSample, 0, static_cast<uint64_t>(wanted.sentence_length)));
  BatchBuilder builder;
  int64_t id = 0;
  for (int64_t left = wanted.tokens; left > 0; left -= wanted.sentence_length) {
    const int64_t length = std::min(left, wanted.sentence_length);
    const std::vector<TokenId> src = random_sentence(length, wanted.src_pieces, random);
    builder.add(src, random_sentence(length, wanted.tgt_pieces, random), id++);
  }
  return builder.take();
}

}  // namespace lacuna

#pragma once

#include "attention/gpu/long_key_gradients.h"
#include "attention/gpu/long_queries.h"

// Sentences of many keys. Scores come from products on tensor cores, and stay in the layout in which these leave them, each lane's elements
// in memory of its own. A type's own row map turns them into weights in passes over that memory: keys and values are each read once.
//
// Forward, a block works on 16 queries; its warps share the keys. What passes over a row have found, at most four numbers, is kept: with
// them the backward pass works the weights of any keys out again, without a pass (RecalledRow). It has two kernels. In the first, a block
// owns 16 queries, finds the sums that the gradients of their scores need, and the gradients of the queries. In the second, a warp owns 16
// keys, and sums their gradients over the queries, in order. So no sum depends on which block or warp comes first, or on what else is in
// the batch. Where none of 16 queries weighs any of 32 keys, neither kernel does anything.
namespace lacuna::cuda {

/// The kernels for long rows: one of the forward pass, two of the backward pass.
enum class LongPass { kForward, kQueryGradients, kKeyGradients };

/// The work of a block: on the index-th tile or keys of a launch, for the head at `place` of the schedule.
template <LongPass kPass, class Map, class T, class Block>
LACUNA_DEVICE void long_block(const Map& map, const KernelCall<T>& call, const Block& block, int index, int place, unsigned char* memory) {
  if constexpr (kPass == LongPass::kKeyGradients) {
    const LongKeys keys = call.schedule.long_keys[index];
    const LongSentence sentence = call.schedule.long_sentences[keys.sentence];
    const LongKeysMemory<T> parts(memory, call.width, block.warp(), block.warps());
    LongKeyGradients<Map, T, Block>(map, call, block, sentence, place, keys, parts).run();
  } else {
    constexpr bool kIsBackward = kPass == LongPass::kQueryGradients;
    const LongTile tile = call.schedule.long_tiles[index];
    const LongSentence sentence = call.schedule.long_sentences[tile.sentence];
    const bool is_outside = call.row_memory != nullptr;
    unsigned char* const rows =
        is_outside ? call.row_memory + (int64_t{index} * call.schedule.num_heads + place) * call.row_bytes : nullptr;
    const LongRowsMemory<T> parts(memory, rows, is_outside, call.width, tile.end - tile.begin, block.warps(), kIsBackward);
    const LongQueries<Map, T, Block> queries(map, call, block, sentence, place, tile, parts);
    if constexpr (kIsBackward) {
      queries.backward();
    } else {
      queries.forward();
    }
  }
}

}  // namespace lacuna::cuda

#pragma once

#include "kernels/gpu/block.h"

/// The best tokens of rows of logits: a block for each row.
namespace lacuna::gpu {

inline constexpr int kBestWarps = 8, kBestThreads = kBestWarps * kLanes;
static_assert(kMostBest <= kBestThreads, "the bound is the k-th largest of the threads' maxima");

/// The memory that the threads of a block share.
struct BestRowMemory {
  static constexpr int kCandidates = 1024;

  float own_top[kBestThreads];  // the largest logit of each thread
  float tops[kBestThreads], sums[kBestThreads];
  float bound;    // at least k tokens reach it
  int32_t count;  // of the candidates, which reach the bound; there may be more than fit
  float log_probs[kCandidates];
  int32_t tokens[kCandidates];
};

/// True if a token precedes another: log-probabilities fall, and equal ones are ordered by the token.
LACUNA_KERNEL_CODE bool precedes(float log_prob, int32_t token, float other_log_prob, int32_t other_token) {
  return log_prob != other_log_prob ? log_prob > other_log_prob : token < other_token;
}

/// The search of a row, as one of the block's threads does it. Steps that all do before the next begins are calls of each().
template <class Block>
struct RowSearch {
  const Block& block;
  const BestRows& args;
  BestRowMemory& memory;
  const int thread = block.warp() * kLanes + block.lane();
  const int64_t row = block.index();
  const float* const logits = args.logits + row * args.columns;
  float log_sum = 0;

  LACUNA_KERNEL_CODE void run() {
    find_log_sum();
    put_asked();
    if (std::isnan(log_sum)) return put_none();
    find_bound();
    collect();
    if (memory.count <= BestRowMemory::kCandidates) {
      put_by_rank();
    } else {
      put_one_by_one();
    }
  }

  /// Calls f() and waits until all threads have done so.
  template <class F>
  LACUNA_KERNEL_CODE void each(F f) const {
    f();
    block.sync();
  }

  LACUNA_KERNEL_CODE void put_asked() const {
    const int32_t asked = args.asked != nullptr ? args.asked[row] : args.asked_of_all;
    if (thread == 0 && asked != kNoToken) args.asked_log_probs[row] = log_prob(asked);
  }

  LACUNA_KERNEL_CODE float log_prob(int64_t column) const { return logits[column] - log_sum; }

  /// Calls f(column) for each column of the thread.
  template <class F>
  LACUNA_KERNEL_CODE void for_own(F f) const {
    for (int64_t column = thread; column < args.columns; column += kBestThreads) f(column);
  }

  /// Calls f(i, i + half) in rounds, each of which halves what is left, until the numbers 0 to kBestThreads - 1 are joined at 0.
  template <class F>
  LACUNA_KERNEL_CODE void join_in_pairs(F f) const {
    for (int half = kBestThreads / 2; half > 0; half /= 2) {
      each([&] {
        if (thread < half) f(thread, thread + half);
      });
    }
  }

  LACUNA_KERNEL_CODE void find_log_sum() {
    each([&] {
      float top = -INFINITY;
      for_own([&](int64_t column) { top = fmaxf(top, logits[column]); });  // NaN is ignored here, and found in the sum
      memory.own_top[thread] = memory.tops[thread] = top;
    });
    join_in_pairs([&](int a, int b) { memory.tops[a] = fmaxf(memory.tops[a], memory.tops[b]); });
    const float top = memory.tops[0];
    each([&] {
      float sum = 0;
      for_own([&](int64_t column) { sum += expf(logits[column] - top); });
      memory.sums[thread] = sum;
    });
    join_in_pairs([&](int a, int b) { memory.sums[a] += memory.sums[b]; });
    log_sum = top + logf(memory.sums[0]);
  }

  /// The bound is the k-th largest of the threads' largest log-probabilities.
  LACUNA_KERNEL_CODE void find_bound() const {
    each([&] {
      const float own = memory.own_top[thread];
      int rank = 0;
      for (int other = 0; other < kBestThreads; ++other) rank += precedes(memory.own_top[other], other, own, thread);
      if (rank == args.k - 1) memory.bound = own - log_sum;
      if (thread == 0) memory.count = 0;
    });
  }

  LACUNA_KERNEL_CODE void collect() const {
    each([&] {
      for_own([&](int64_t column) {
        const float value = log_prob(column);
        if (!(value >= memory.bound)) return;
        const int32_t place = block.add(&memory.count, 1);
        if (place >= BestRowMemory::kCandidates) return;
        memory.log_probs[place] = value;
        memory.tokens[place] = static_cast<int32_t>(column);
      });
    });
  }

  LACUNA_KERNEL_CODE void put(int place, float value, int32_t token) const {
    args.log_probs[row * args.k + place] = value;
    args.tokens[row * args.k + place] = token;
  }

  /// Puts each of the first k candidates where it belongs: behind those that precede it. They are collected in any order.
  LACUNA_KERNEL_CODE void put_by_rank() const {
    each([&] {
      for (int32_t i = thread; i < memory.count; i += kBestThreads) {
        int rank = 0;
        for (int32_t j = 0; j < memory.count; ++j)
          rank += precedes(memory.log_probs[j], memory.tokens[j], memory.log_probs[i], memory.tokens[i]);
        if (rank < args.k) put(rank, memory.log_probs[i], memory.tokens[i]);
      }
    });
  }

  /// Finds one token after the other among all of the row; for rows with very many equal logits.
  LACUNA_KERNEL_CODE void put_one_by_one() const {
    float last_log_prob = INFINITY;
    int32_t last_token = -1;
    for (int32_t place = 0; place < args.k; ++place) {
      each([&] {
        float best = -INFINITY;
        int32_t token = kNoToken;
        for_own([&](int64_t column) {
          const auto candidate = static_cast<int32_t>(column);
          const float value = log_prob(column);
          if (!precedes(last_log_prob, last_token, value, candidate) || !precedes(value, candidate, best, token)) return;
          best = value;
          token = candidate;
        });
        memory.log_probs[thread] = best;
        memory.tokens[thread] = token;
      });
      join_in_pairs([&](int a, int b) {
        if (!precedes(memory.log_probs[b], memory.tokens[b], memory.log_probs[a], memory.tokens[a])) return;
        memory.log_probs[a] = memory.log_probs[b];
        memory.tokens[a] = memory.tokens[b];
      });
      last_log_prob = memory.log_probs[0];
      last_token = memory.tokens[0];
      each([&] {
        if (thread == 0) put(place, last_log_prob, last_token);
      });
    }
  }

  /// Says of all places that there is no token.
  LACUNA_KERNEL_CODE void put_none() const {
    for (int place = thread; place < args.k; place += kBestThreads) put(place, -INFINITY, kNoToken);
  }
};

struct BestOfRow {
  using Args = BestRows;
  static constexpr int kWarps = kBestWarps, kSharedBytes = static_cast<int>(sizeof(BestRowMemory));

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t /*rows*/) {
    RowSearch<Block>{block, args, *reinterpret_cast<BestRowMemory*>(block.shared())}.run();
  }
};

}  // namespace lacuna::gpu

#pragma once

// The loops over blocks. Included by sources that are compiled once for each instruction set, AVX2 at least, and define
// how a block of rows is multiplied by a panel.

#include "kernels/block_layout.h"
#include "kernels/vector_sums.h"

namespace lacuna::LACUNA_TARGET {
namespace {

int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// Packs `steps` steps of the block of rows that begins at `row`, from `step` on.
template <class Factor>
void pack_rows(const BlockProduct<Factor>& p, int64_t row, int64_t step, int64_t steps, uint32_t* tiles, const TilePlaces& places) {
  using Number = typename Factor::Number;
  const Number* const first = p.a.data + row * p.a.row;
  const int64_t rows = p.rows - row;
  if (p.a.column == 1) {
    const int64_t depth = step * kStep<Factor>;
    return LayOut<Factor>::rows_in_depth(Lines<Number>{first + depth, p.a.row, rows, p.depth - depth}, steps, tiles, places);
  }
  for (int64_t end = step + steps; step < end; ++step, tiles += places.step) {
    const int64_t depth = step * kStep<Factor>;
    LayOut<Factor>::rows_across(Lines<Number>{first + depth * p.a.column, p.a.column, p.depth - depth, rows}, tiles, places);
  }
}

/// Packs a step of the panel that begins at `column`, from `depth` on.
template <class Factor>
inline void pack_columns(const BlockProduct<Factor>& p, int64_t depth, int64_t column, uint32_t* tiles, const TilePlaces& places) {
  using Number = typename Factor::Number;
  const Number* const from = p.b.data + depth * p.b.row + column * p.b.column;
  const int64_t columns = p.columns - column, depths = p.depth - depth;
  if (p.b.column == 1) {
    LayOut<Factor>::columns_across(Lines<Number>{from, p.b.row, depths, columns}, tiles, places);
  } else {
    LayOut<Factor>::columns_in_depth(Lines<Number>{from, p.b.column, columns, depths}, tiles, places);
  }
}

// A Multiplier<Factor> exists while blocks are multiplied, and has
//
//   static TilePlaces places_of_rows(int64_t steps), places_of_panel(int64_t steps);
//   static constexpr int64_t kBlocksTogether;
//   void multiply(const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums, float* c, int64_t c_row, int64_t count) const;
//
// which give the layout of a block of rows and of a panel of so many steps, and how many blocks of rows are multiplied
// by a panel in turn while it is in the L1 cache; `multiply` computes a block of `count` rows (at most 32) and 32
// columns of c.

/// Makes earlier writes visible to tile loads, which the compiler does not see as reads of memory.
inline void finish_writing() {
  asm volatile("" ::: "memory");
}

void copy(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// Computes a block of fewer than 32 rows or columns through a buffer of a whole one.
template <class Multiplier>
void multiply_edge(const Multiplier& multiplier, const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums start, float* c,
                   int64_t c_row, int64_t count, int64_t width) {
  alignas(64) float sums[kBlock * kBlock] = {};
  if (start.sums != nullptr)
    for (int64_t r = 0; r < count; ++r) copy(start.sums + r * start.row, width, sums + r * kBlock);
  finish_writing();
  multiplier.multiply(rows, columns, steps, {sums, kBlock}, sums, kBlock, count);
  for (int64_t r = 0; r < count; ++r) copy(sums + r * kBlock, width, c + r * c_row);
}

template <class Factor>
int64_t depth_blocks(const BlockProduct<Factor>& p) {
  return (p.depth + kDepthBlock<Factor> - 1) / kDepthBlock<Factor>;
}

/// Calls f(first step, steps) for each block of depths.
template <class Factor, class F>
void for_depths(const BlockProduct<Factor>& p, F f) {
  constexpr int64_t kSteps = kDepthBlock<Factor> / kStep<Factor>;
  const int64_t all = (p.depth + kStep<Factor> - 1) / kStep<Factor>;
  for (int64_t step = 0; step < all; step += kSteps) f(step, least(kSteps, all - step));
}

/// Packs panels begin to end - 1 of a block of depths.
template <class Multiplier, class Factor>
void pack_block(const BlockProduct<Factor>& p, int64_t step, int64_t steps, int64_t begin, int64_t end, uint32_t* panels) {
  const TilePlaces places = Multiplier::places_of_panel(steps);
  for (int64_t panel = begin; panel < end; ++panel) {
    uint32_t* const tiles = panels + panel * steps * Factor::kParts * kStepWords;
    for (int64_t s = 0; s < steps; ++s) pack_columns(p, (step + s) * kStep<Factor>, panel * kBlock, tiles + s * places.step, places);
  }
}

/// Prefetches a part of a matrix into the L2 cache, a share at a time while other numbers are multiplied.
template <class Number>
class Fetch {
 public:
  /// Prefetches `rows` x `columns` of the matrix from (row, column) on, in `times` shares.
  Fetch(const StridedMatrix<Number>& matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t times) {
    if (rows <= 0 || columns <= 0) return;
    const bool by_rows = matrix.column == 1;
    at_ = reinterpret_cast<const char*>(matrix.data + row * matrix.row + column * matrix.column);
    stride_ = (by_rows ? matrix.row : matrix.column) * kSize;
    width_ = (by_rows ? columns : rows) * kSize;
    left_ = by_rows ? rows : columns;
    share_ = left_ * ((width_ + kCacheLine - 1) / kCacheLine) / times + 1;
  }
  void next() {
    for (int64_t i = 0; i < share_ && left_ > 0; ++i) {
      _mm_prefetch(at_ + offset_, _MM_HINT_T1);
      offset_ += kCacheLine;
      if (offset_ < width_) continue;
      offset_ = 0;
      at_ += stride_;
      --left_;
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(Number), kCacheLine = 64;
  const char* at_ = nullptr;  ///< a row or a column, whichever is contiguous
  int64_t offset_ = 0, stride_ = 0, width_ = 0, left_ = 0, share_ = 0;
};

/// Multiplies blocks begin to end - 1 of the rows by the packed panels of one block of depths. The first row of the
/// result is at `to`. `after_each` is called after each product of a block of rows and a panel.
template <class Multiplier, class Factor, class F>
void multiply_depths(const Multiplier& multiplier, const BlockProduct<Factor>& p, int64_t step, int64_t steps, const uint32_t* panels,
                     int64_t begin, int64_t end, float* to, F after_each) {
  constexpr int64_t kWords = Factor::kParts * kStepWords;  // of a step
  constexpr int64_t kBlockWords = kDepthBlock<Factor> / kStep<Factor> * kWords, kTogether = Multiplier::kBlocksTogether;
  alignas(64) uint32_t blocks[kTogether * kBlockWords];
  const auto multiply = [&](int64_t row, int64_t column, const uint32_t* rows) {
    const uint32_t* const panel = panels + column / kBlock * steps * kWords;
    float* const c = to + (row - begin * kBlock) * p.c_row + column;
    FirstSums start = {nullptr, 0};
    if (p.add || step > 0) {
      start = {c, p.c_row};
    } else if (p.bias != nullptr) {
      start = {p.bias + column, 0};
    }
    const int64_t count = least(kBlock, p.rows - row), width = least(kBlock, p.columns - column);
    if (count == kBlock && width == kBlock) {
      multiplier.multiply(rows, panel, steps, start, c, p.c_row, kBlock);
    } else {
      multiply_edge(multiplier, rows, panel, steps, start, c, p.c_row, count, width);
    }
  };
  for (int64_t first = begin; first < end; first += kTogether) {
    const int64_t together = least(kTogether, end - first);
    for (int64_t i = 0; i < together; ++i)
      pack_rows(p, (first + i) * kBlock, step, steps, blocks + i * kBlockWords, Multiplier::places_of_rows(steps));
    finish_writing();
    for (int64_t column = 0; column < p.columns; column += kBlock)
      for (int64_t i = 0; i < together; ++i) {
        multiply((first + i) * kBlock, column, blocks + i * kBlockWords);
        after_each();
      }
  }
}

/// Returns the offset in words of the panels of the block of depths that begins at `step`.
template <class Factor>
uint32_t* panels_of(const BlockProduct<Factor>& p, int64_t step) {
  return p.panels + step * blocks_in(p.columns) * Factor::kParts * kStepWords;
}

template <template <class> class Multiplier, class Factor>
void pack_panels(const BlockProduct<Factor>& p, int64_t begin, int64_t end) {
  for_depths(p, [&](int64_t step, int64_t steps) { pack_block<Multiplier<Factor>>(p, step, steps, begin, end, panels_of(p, step)); });
}

template <template <class> class Multiplier, class Factor>
void multiply_rows(const BlockProduct<Factor>& p, int64_t begin, int64_t end, float* to) {
  constexpr int64_t kTogether = Multiplier<Factor>::kBlocksTogether;
  const Multiplier<Factor> multiplier;
  for (int64_t first = begin; first < end; first += kTogether) {  // through all depths while these rows of c are cached
    const int64_t last = least(first + kTogether, end), next = last * kBlock;
    Fetch<typename Factor::Number> rows_to_come(p.a, next, least(kTogether * kBlock, p.rows - next), 0, p.depth,
                                                (last - first) * blocks_in(p.columns) * depth_blocks(p));
    for_depths(p, [&](int64_t step, int64_t steps) {
      multiply_depths(multiplier, p, step, steps, panels_of(p, step), first, last, to + (first - begin) * kBlock * p.c_row,
                      [&] { rows_to_come.next(); });
    });
  }
}

template <template <class> class Multiplier, class Factor>
void multiply_deep(const BlockProduct<Factor>& p, float* to) {
  using Number = typename Factor::Number;
  const Multiplier<Factor> multiplier;
  const int64_t blocks = blocks_in(p.rows), panels = blocks_in(p.columns);
  for_depths(p, [&](int64_t step, int64_t steps) {
    pack_block<Multiplier<Factor>>(p, step, steps, 0, panels, p.panels);
    const int64_t next = (step + steps) * kStep<Factor>, depth = least(kDepthBlock<Factor>, p.depth - next);
    Fetch<Number> b_to_come(p.b, next, depth, 0, p.columns, blocks * panels), a_to_come(p.a, 0, p.rows, next, depth, blocks * panels);
    multiply_depths(multiplier, p, step, steps, p.panels, 0, blocks, to, [&] {
      b_to_come.next();
      a_to_come.next();
    });
  });
}

template <template <class> class Multiplier, class Factor>
constexpr BlockKernel<Factor> kernel_of() {
  return {pack_panels<Multiplier, Factor>, multiply_rows<Multiplier, Factor>, multiply_deep<Multiplier, Factor>};
}

}  // namespace
}  // namespace lacuna::LACUNA_TARGET

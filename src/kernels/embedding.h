#pragma once

#include <vector>

#include "kernels/dropout.h"

namespace lacuna {

inline constexpr int64_t kNoId = -1;

/// Returns dropout(scale * table[ids] + position_table[positions]) [T, D] for ids [T] int64 and the position of each
/// row, [T] int32 (not read without a table). `position_table` [P, D] may be undefined. The row of `zero_id` is taken to be zero, and has
/// no gradient. Throws ShapeError for an id outside of the table; a GPU gives NaN for it. Gradients of both tables are summed row by row in
/// the order of the batch.
Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
             const Dropout& dropout, int64_t zero_id = kNoId);

/// Writes scale * table[ids] + position_table[positions] to `to` [rows, D]: tables of float on the CPU, without dropout
/// and gradients.
void embed_into(const Tensor& table, const std::vector<int64_t>& ids, double scale, const Tensor& position_table,
                const std::vector<int32_t>& positions, int64_t zero_id, float* to);

}  // namespace lacuna

// The core for processors that multiply in tiles.
#define HWY_WANT_AVX3_DL  // Highway's name for what such processors have beside tiles
#include "attention/core_any_length.h"
#include "attention/core_masked.h"
#include "attention/tile_products.h"

namespace lacuna::core {
namespace {

using Direct = AnyLengthCore<SimdMachine>;
using Tiled = Core<SimdMachine, TileProducts>;
using Masked = MaskedCore<SimdMachine>;

/// Packing the keys for few queries or short rows costs more than it saves. Rows that must be alike don't pass here: how many there are
/// would show in their bits.
bool is_worth_packing(const Task<float>& task) {
  constexpr int kFew = 16, kShort = 64;
  return !task.rows_alike && task.queries >= kFew && task.keys >= kShort;
}
bool takes_stored(const Task<float>& task) {
  return is_worth_packing(task) && task.slots == nullptr;
}

void forward(const Call<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
  is_worth_packing(task) ? Tiled::forward(call, task, workspace) : Direct::forward(call, task, workspace);
}

void backward(const Call<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
  is_worth_packing(task) ? Tiled::backward(call, task, workspace) : Direct::backward(call, task, workspace);
}

int64_t memory_elements(int64_t row, int64_t d_head) {
  const int64_t direct = Direct::memory_elements(row, d_head), tiled = Tiled::memory_elements(row, d_head);
  return direct > tiled ? direct : tiled;
}

}  // namespace

Functions<float> functions_amx() {
  return {forward, backward, Masked::forward, Masked::backward, memory_elements, Masked::mask_memory_elements, takes_stored};
}

}  // namespace lacuna::core

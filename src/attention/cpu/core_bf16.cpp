// The core for processors that multiply numbers of bf16, in tiles or in vectors.
#define LACUNA_SIMD_NAMESPACE N_BF16
#include "attention/cpu/bf16_products.h"
#include "attention/cpu/core_masked.h"

namespace lacuna::core {
namespace {

using Direct = Core<SimdMachine>;
using Masked = MaskedCore<SimdMachine>;

/// Packing the keys for few queries or short rows costs more than it saves. Rows that must be alike don't pass here: how many there are
/// would show in their bits.
bool is_worth_packing(int64_t queries, int64_t keys, bool rows_alike) {
  constexpr int64_t kFew = 16, kShort = 64;
  return !rows_alike && queries >= kFew && keys >= kShort;
}
bool is_worth_packing(const Task<float>& task) {
  return is_worth_packing(task.queries, task.keys, task.rows_alike);
}

template <class Multiplier>
struct Mixed {
  using Packed = Core<SimdMachine, Bf16Products<Multiplier>>;

  static void forward(const Call<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
    is_worth_packing(task) ? Packed::forward(call, task, workspace) : Direct::forward(call, task, workspace);
  }
  static void backward(const Call<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
    is_worth_packing(task) ? Packed::backward(call, task, workspace) : Direct::backward(call, task, workspace);
  }
  static int64_t memory_elements(int64_t row, int64_t rows, int64_t d_head) {
    const int64_t direct = Direct::memory_elements(row, rows, d_head), packed = Packed::memory_elements(row, rows, d_head);
    return direct > packed ? direct : packed;
  }

  static Functions<float> functions() {
    return {forward, backward, Masked::forward, Masked::backward, memory_elements, Masked::mask_memory_elements, is_worth_packing};
  }
};

}  // namespace

Functions<float> functions_amx() {
  return Mixed<TileMultiplier>::functions();
}
Functions<float> functions_avx512_bf16() {
  return Mixed<VectorMultiplier>::functions();
}

}  // namespace lacuna::core

// The core for processors that multiply numbers of bf16, in tiles or in vectors.
#define LACUNA_SIMD_NAMESPACE N_BF16
#include "attention/cpu/bf16_products.h"
#include "attention/cpu/core.h"

namespace lacuna::core {
namespace {

using Direct = Core<SimdMachine>;

/// Returns true if a task's products are worth packing their factors in bf16: not for few queries or short rows. Nor
/// for rows that must be alike, whose bits would show how many of them there are.
bool is_worth_packing(int64_t queries, int64_t keys, bool rows_alike) {
  constexpr int64_t kFewestQueries = 16, kFewestKeys = 64;
  return !rows_alike && queries >= kFewestQueries && keys >= kFewestKeys;
}
bool is_worth_packing(const Task<float>& task) {
  return is_worth_packing(task.queries, task.keys, task.rows_alike);
}

template <class Multiplier>
struct Mixed {
  using Packed = Core<SimdMachine, Bf16Products<Multiplier>>;

  static void forward(const CallConstants<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
    (is_worth_packing(task) ? Packed::forward : Direct::forward)(call, task, workspace);
  }
  static void backward(const CallConstants<float>& call, const Task<float>& task, const Workspace<float>& workspace) {
    (is_worth_packing(task) ? Packed::backward : Direct::backward)(call, task, workspace);
  }
  static int64_t memory_elements(int64_t row, int64_t rows, int64_t d_head) {
    const int64_t direct = Direct::memory_elements(row, rows, d_head), packed = Packed::memory_elements(row, rows, d_head);
    return direct > packed ? direct : packed;
  }

  static EntryPoints<float> entry_points() {
    return {.forward = forward, .backward = backward, .memory_elements = memory_elements, .rounds = is_worth_packing};
  }
};

}  // namespace

EntryPoints<float> core_amx() {
  return Mixed<TileMultiplier>::entry_points();
}
EntryPoints<float> core_avx512_bf16() {
  return Mixed<VectorMultiplier>::entry_points();
}

}  // namespace lacuna::core

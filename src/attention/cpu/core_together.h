#pragma once

#include "attention/cpu/core.h"

namespace lacuna::core {

/// The forward pass of several tasks of few queries, such as heads of a decoder's cross attention. Their rows of scores
/// become weights together, between the products of each.
template <class M>
class CoreTogether : private Core<M> {
 public:
  using S = typename M::scalar;

  static void forward(const CallConstants<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace) {
    PendingRows rows;
    forward(call, tasks, count, workspace, rows);
  }

 private:
  using Base = Core<M>;
  using Base::Base;
  using typename Base::Tile, typename Base::PendingRows;
  static_assert(kMaxRowsTogether <= Base::kTile, "more rows would be pending than there is room for");

  /// Each task's core lives until those after it have added their rows.
  static void forward(const CallConstants<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace, PendingRows& rows) {
    CoreTogether core(call, *tasks, workspace);
    core.for_each_tile([](const Tile&) {},
                       [&](const Tile& tile) {
                         core.compute_scores(tile, rows);
                         if (count > 1) {
                           Workspace<S> next = workspace;
                           next.memory += Base::memory_elements(workspace.row, workspace.rows, call.d_head);
                           forward(call, tasks + 1, count - 1, next, rows);
                         } else {
                           core.weigh(rows);
                         }
                         core.spread_weights(tile);
                         core.show(tile);
                         core.write_context(tile);
                       });
  }
};

/// Returns the core of a machine with its own products.
template <class M>
EntryPoints<typename M::scalar> entry_points() {
  using One = Core<M>;
  return {.forward = One::forward,
          .backward = One::backward,
          .memory_elements = One::memory_elements,
          .forward_together = CoreTogether<M>::forward};
}

}  // namespace lacuna::core

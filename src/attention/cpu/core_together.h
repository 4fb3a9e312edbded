#pragma once

#include "attention/cpu/core_cpu.h"

namespace lacuna::core {

/// Tasks of few queries, forward: heads of a decoder's cross attention. Their rows are weighed together, between the products of each.
template <class M>
class CoreTogether : private Core<M> {
 public:
  using S = typename M::scalar;

  static void forward(const Call<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace) {
    WaitingRows rows;
    forward(call, tasks, count, workspace, rows);
  }

 private:
  using Base = Core<M>;
  using Base::Base;
  using typename Base::Tile, typename Base::WaitingRows;
  static_assert(kRowsTogether <= Base::kTile, "more rows would wait than there is room for");

  /// Each task's core lives until those after it have brought their rows.
  static void forward(const Call<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace, WaitingRows& rows) {
    CoreTogether core(call, *tasks, workspace);
    core.for_each_tile([](const Tile&) {},
                       [&](const Tile& tile) {
                         core.score_tile(tile, rows);
                         if (count > 1) {
                           Workspace<S> next = workspace;
                           next.memory += Base::memory_elements(workspace.row, workspace.rows, call.d_head);
                           forward(call, tasks + 1, count - 1, next, rows);
                         } else {
                           core.weigh_waiting(rows);
                         }
                         core.spread_weights(tile);
                         core.show(tile);
                         core.combine(tile);
                       });
  }
};

}  // namespace lacuna::core

#include "kernels/shape_lists.h"

#include <mutex>

#include "base/recent_values.h"
#include "kernels/gpu/kernels.h"

namespace lacuna {
namespace {

std::vector<int64_t> first_rows_of(const RaggedShape& shape) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < shape.num_sentences(); ++b)
    if (shape.length(b) > 0) rows.push_back(shape.begin(b));
  return rows;
}

struct KeptLists {
  RaggedShapePtr shape;
  ShapeLists lists;
};

/// Puts the shape's lists into an upload, which fills the result.
void add_lists(Upload& upload, KeptLists& kept) {
  upload.add(kept.shape->offsets(), kept.lists.offsets);
  upload.add(kept.shape->ids(), kept.lists.ids);
  upload.add(positions_of(*kept.shape), kept.lists.positions);
  upload.add(first_rows_of(*kept.shape), kept.lists.first_rows);
}

/// The lists of the last few shapes.
class RecentLists {
 public:
  /// Returns the lists of a shape; if there are none, what make() returns.
  template <class Make>
  ShapeLists get(at::Device device, const RaggedShapePtr& shape, const Make& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recent_.get([&](const KeptLists& kept) { return kept.shape == shape && kept.lists.offsets.device() == device; }, make).lists;
  }

 private:
  std::mutex mutex_;  // a backward pass runs on another thread
  RecentValues<KeptLists> recent_;
};

RecentLists& recent_lists() {
  static RecentLists lists;
  return lists;
}

std::vector<int64_t> wide(const BatchSide& side) {
  if (std::ssize(side.ids) != side.shape->num_tokens())
    throw ShapeError(std::to_string(side.ids.size()) + " ids for sentences of " + std::to_string(side.shape->num_tokens()) +
                     " tokens in all");
  return {side.ids.begin(), side.ids.end()};
}

}  // namespace

ShapeLists lists_on(at::Device device, const RaggedShapePtr& shape) {
  return recent_lists().get(device, shape, [&] {
    KeptLists made = {shape, {}};
    Upload upload;
    add_lists(upload, made);
    upload.send(device);
    return made;
  });
}

std::pair<Ragged, Ragged> batch_on(at::Device device, const BatchSide& src, const BatchSide& tgt,
                                   const std::function<void(Upload&)>& add_more) {
  if (device.is_cpu() && gpu::kernels_for(false) == nullptr) return {ragged_of(src.ids, src.shape), ragged_of(tgt.ids, tgt.shape)};
  Upload upload;
  Tensor src_ids, tgt_ids;
  KeptLists of_src = {src.shape, {}}, of_tgt = {tgt.shape, {}};
  upload.add(wide(src), src_ids);
  upload.add(wide(tgt), tgt_ids);
  add_lists(upload, of_src);
  add_lists(upload, of_tgt);
  add_more(upload);
  upload.send(device);
  for (const KeptLists* made : {&of_src, &of_tgt}) recent_lists().get(src_ids.device(), made->shape, [made] { return *made; });
  return {{src_ids, src.shape}, {tgt_ids, tgt.shape}};
}

}  // namespace lacuna

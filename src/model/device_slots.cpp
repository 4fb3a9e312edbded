#include "model/device_slots.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "attention/registry.h"
#include "base/device.h"
#include "kernels/gpu/kernels.h"

namespace lacuna {
namespace {

constexpr int64_t kFewest = 64;  // hypotheses, and positions, that a table has room for

int64_t largest(const std::vector<int32_t>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

}  // namespace

bool has_device_slots(const Tensor& like) {
  return like.scalar_type() == at::kFloat && gpu::kernels_for(like.is_cuda()) != nullptr;
}

void DeviceSlots::select(const std::vector<int32_t>& parents) {
  std::vector<int32_t> selected;
  selected.reserve(parents.size());
  for (const int32_t parent : parents) selected.push_back(parents_[static_cast<size_t>(parent)]);
  parents_ = std::move(selected);
}

void DeviceSlots::add(int64_t hypotheses) {
  parents_.resize(parents_.size() + static_cast<size_t>(hypotheses), -1);
}

const DeviceStep& DeviceSlots::append(const Appended& appended) {
  const auto count = std::ssize(appended.tokens);
  // Tokens are twice as wide as the others, which are [N] each.
  std::vector<int32_t> lists(static_cast<size_t>(6 * count));
  const std::vector<int64_t> tokens(appended.tokens.begin(), appended.tokens.end());
  std::memcpy(lists.data(), tokens.data(), tokens.size() * sizeof(int64_t));
  auto next = lists.begin() + 2 * count;
  next = std::copy(parents_.begin(), parents_.end(), next);
  next = std::transform(appended.slots.begin(), appended.slots.end(), next, [](int64_t slot) { return static_cast<int32_t>(slot); });
  next = std::copy(appended.first_of_memory.begin(), appended.first_of_memory.end(), next);
  std::copy(appended.num_memory.begin(), appended.num_memory.end(), next);
  const Tensor there = tensor_of(lists, device_);
  const auto list = [&](int64_t i) { return there.narrow(0, i * count, count); };

  step_.most_keys = largest(appended.positions) + 1;
  step_.most_memory = largest(appended.num_memory);
  const bool is_first = !table_.slots.defined();
  if (!other_.slots.defined() || other_.slots.size(0) < count || other_.slots.size(1) < step_.most_keys) {
    const auto room = [](int64_t wanted, int64_t before) { return wanted <= before ? before : std::max({kFewest, wanted, 2 * before}); };
    const int64_t rows = room(count, is_first ? 0 : table_.slots.size(0)),
                  columns = room(step_.most_keys, is_first ? 0 : table_.slots.size(1));
    other_ = {at::empty({rows, columns}, there.options()), at::empty({rows}, there.options())};
  }
  step_.positions = at::empty({count}, there.options());
  const gpu::SlotMoves moves = {.parents = list(2).const_data_ptr<int32_t>(),
                                .new_slots = list(3).const_data_ptr<int32_t>(),
                                .from_stride = is_first ? 0 : table_.slots.size(1),
                                .to_stride = other_.slots.size(1),
                                .from = is_first ? nullptr : table_.slots.const_data_ptr<int32_t>(),
                                .from_counts = is_first ? nullptr : table_.counts.const_data_ptr<int32_t>(),
                                .to = other_.slots.mutable_data_ptr<int32_t>(),
                                .to_counts = other_.counts.mutable_data_ptr<int32_t>(),
                                .positions = step_.positions.mutable_data_ptr<int32_t>()};
  on_gpu(device_, [&](void* stream) { return gpu::kernels_for(device_.is_cuda())->move_slots(moves, count, stream); });
  std::swap(table_, other_);
  std::iota(parents_.begin(), parents_.end(), 0);

  step_.tokens = there.narrow(0, 0, 2 * count).view(at::kLong);
  step_.num_keys = table_.counts.narrow(0, 0, count);
  step_.slots = table_.slots.narrow(0, 0, count);
  step_.first_of_memory = list(4);
  step_.num_memory = list(5);
  return step_;
}

const cuda::PatternTable* DeviceSlots::patterns(const AttentionType& type, int64_t num_heads) {
  bool shows_all = true;
  for (int64_t head = 0; head < (type.has_one_pattern() ? 1 : num_heads); ++head)
    shows_all = shows_all && type.pattern(head).shows_every_key();
  if (shows_all) return nullptr;
  cuda::PatternTable& table = patterns_[&type];
  if (table.positions < step_.most_keys)
    table = cuda::pattern_table(type, num_heads, std::max({kFewest, step_.most_keys, 2 * table.positions}), device_);
  return &table;
}

}  // namespace lacuna

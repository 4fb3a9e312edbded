#include "attention/dense_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "attention/call.h"
#include "attention/registry.h"
#include "base/device.h"
#include "base/recent_values.h"

namespace lacuna {
namespace {

/// The position of each row of k in its sentence, [Tk]; -1 = no sentence sees the row.
std::vector<int64_t> positions_of_rows(const AttentionCall& call) {
  const KeyRange& keys = *call.keys;
  std::vector<int64_t> positions(static_cast<size_t>(call.k.size(0)), -1);
  for (size_t b = 0; b < keys.begin.size(); ++b)
    for (int32_t j = 0; j < keys.count[b]; ++j) {
      const int32_t place = keys.begin[b] + j, row = keys.slots.empty() ? place : keys.slots[static_cast<size_t>(place)];
      int64_t& position = positions[static_cast<size_t>(row)];
      if (position >= 0 && position != j)
        throw ShapeError("attention: a row of k is a key at two positions, which dense weights cannot have");
      position = j;
    }
  return positions;
}

/// Unit vectors in place of k's or v's rows.
struct UnitRows {
  KeyRange keys;
  int64_t rows, heads, d;
  at::TensorOptions options;
  std::vector<Tensor> parts;  ///< [K / d] tensors [Tk, H, d]: tensor c has a 1 at element j - c d of the key at position j

  bool serves(const AttentionCall& call) const {
    return rows == call.k.size(0) && heads == call.q.size(1) && d == call.q.size(2) && options.device() == call.k.device() &&
           options.dtype() == call.k.dtype() && keys == *call.keys;
  }
};

UnitRows new_unit_rows(const AttentionCall& call) {
  const at::NoGradGuard no_gradients;
  const int64_t d = call.q.size(2), heads = call.q.size(1), rows = call.k.size(0);
  UnitRows units = {*call.keys, rows, heads, d, call.k.options(), {}};
  const Tensor positions = tensor_of(positions_of_rows(call), call.k.device()).unsqueeze(1);
  for (int64_t first = 0; first < dense_keys(call); first += d) {
    const Tensor columns = at::arange(first, first + d, positions.options()).unsqueeze(0);
    units.parts.push_back(positions.eq(columns).to(call.k.scalar_type()).unsqueeze(1).expand({rows, heads, d}));
  }
  return units;
}

/// The last few are cached: the layers of a model ask for the same ones, and those on a GPU take launches.
std::vector<Tensor> unit_rows(const AttentionCall& call) {
  thread_local RecentValues<UnitRows> recent;
  return recent.get([&](const UnitRows& units) { return units.serves(call); }, [&] { return new_unit_rows(call); }).parts;
}

std::shared_ptr<const AttentionType> with_pattern_of(const AttentionType& type, ConfigNode node, int64_t num_heads) {
  node.set("pattern", *type.description().find("pattern"));
  return make_attention_type(node, num_heads);
}

ForwardContext unseen(ForwardContext context) {
  context.probe = nullptr;
  return context;
}

}  // namespace

int64_t dense_keys(const AttentionCall& call) {
  const int64_t d = call.q.size(2);
  int64_t most = 1;
  for (const int32_t count : call.keys->count) most = std::max<int64_t>(most, count);
  return (most + d - 1) / d * d;
}

Tensor dense_weights(const AttentionCall& call, const ForwardContext& context) {
  AttentionCall part = call;
  part.packed = Tensor();
  part.dropout = 0;
  std::vector<Tensor> parts;
  for (const Tensor& units : unit_rows(call)) {
    part.v = units;
    parts.push_back(attention(part, unseen(context)));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 2);
}

Tensor dense_context(const AttentionCall& call, const Tensor& weights, const AttentionType& identity, const ForwardContext& context) {
  AttentionCall part = call;
  part.packed = Tensor();
  part.numbers.clear();
  part.type = &identity;
  part.scale = 1;
  const std::vector<Tensor> all = unit_rows(call);
  const std::vector<Tensor> weights_of = all.size() == 1 ? std::vector<Tensor>{weights} : weights.split(call.q.size(2), 2);
  Tensor sum;
  for (size_t i = 0; i < all.size(); ++i) {
    part.q = weights_of[i];
    part.k = all[i];
    const Tensor context_of_part = attention(part, unseen(context));
    sum = sum.defined() ? sum + context_of_part : context_of_part;
  }
  return sum;
}

std::shared_ptr<const AttentionType> identity_like(const AttentionType& type, int64_t num_heads) {
  return with_pattern_of(type, ConfigNode::map({{"type", ConfigNode::scalar("rela")}, {"activation", ConfigNode::scalar("identity")}}),
                         num_heads);
}

std::shared_ptr<const AttentionType> softmax_like(const AttentionType& type, int64_t num_heads) {
  return with_pattern_of(type, ConfigNode::map({{"type", ConfigNode::scalar("softmax")}}), num_heads);
}

}  // namespace lacuna

#include "attention/dense_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "attention/call.h"
#include "attention/registry.h"
#include "base/device.h"

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

/// The most keys of a sentence.
int64_t most_keys(const AttentionCall& call) {
  int64_t most = 1;
  for (const int32_t count : call.keys->count) most = std::max<int64_t>(most, count);
  return most;
}

/// The number of weights that one call of `attention` takes or makes. In training narrow heads are widened, as features
/// of 0 cost less than further calls; else the width, and with it a row's bits, must not depend on other sentences.
int64_t weights_of_a_call(const AttentionCall& call, const ForwardContext& context) {
  constexpr int64_t kWide = 64;
  const int64_t d = call.q.size(2);
  return context.training ? std::max(d, std::min(kWide, most_keys(call))) : d;
}

/// Heads of `width` features: those of x [T, H, d], then zeros.
Tensor widened(const Tensor& x, int64_t width) {
  return x.size(2) == width ? x : at::constant_pad_nd(x, {0, width - x.size(2)});
}

/// Unit vectors in place of k's or v's rows, [K / width] tensors [Tk, H, width]: tensor c has a 1 at element j - c width
/// of the key at position j.
std::vector<Tensor> unit_rows(const AttentionCall& call, int64_t width) {
  const int64_t heads = call.q.size(1), rows = call.k.size(0), most = most_keys(call);
  const Tensor positions = tensor_of(positions_of_rows(call), call.k.device()).unsqueeze(1);
  std::vector<Tensor> units;
  for (int64_t first = 0; first < most; first += width) {
    const Tensor columns = at::arange(first, first + width, positions.options()).unsqueeze(0);
    units.push_back(positions.eq(columns).to(call.k.scalar_type()).unsqueeze(1).expand({rows, heads, width}));
  }
  return units;
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

Tensor dense_weights(const AttentionCall& call, const ForwardContext& context) {
  AttentionCall part = call;
  part.packed = Tensor();
  part.dropout = 0;
  const int64_t width = weights_of_a_call(call, context);
  part.q = widened(call.q, width);
  part.k = widened(call.k, width);
  std::vector<Tensor> parts;
  for (const Tensor& units : unit_rows(call, width)) {
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
  const int64_t d_head = call.v.size(2), width = weights_of_a_call(call, context);
  part.v = widened(call.v, width);
  int64_t first = 0;
  Tensor sum;
  for (const Tensor& units : unit_rows(call, width)) {
    part.q = weights.narrow(2, first, width);
    part.k = units;
    const Tensor context_of_part = attention(part, unseen(context));
    sum = sum.defined() ? sum + context_of_part : context_of_part;
    first += width;
  }
  return sum.narrow(2, 0, d_head).contiguous();
}

std::shared_ptr<const AttentionType> identity_like(const AttentionType& type, int64_t num_heads) {
  return with_pattern_of(type, ConfigNode::map({{"type", ConfigNode::scalar("rela")}, {"activation", ConfigNode::scalar("identity")}}),
                         num_heads);
}

std::shared_ptr<const AttentionType> softmax_like(const AttentionType& type, int64_t num_heads) {
  return with_pattern_of(type, ConfigNode::map({{"type", ConfigNode::scalar("softmax")}}), num_heads);
}

}  // namespace lacuna

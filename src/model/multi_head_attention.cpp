#include "model/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/registry.h"
#include "model/regularizer.h"

namespace lacuna {

MultiHeadAttention::MultiHeadAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path)
    : d_model_(options.d_model),
      num_heads_(options.num_heads),
      place_(place),
      dropout_(options.attention_dropout),
      numbers_(make_row_numbers(*place.choice.type, options.num_heads, options.d_model)),
      norm_(register_module("norm",
                            make_attention_norm(place.choice.norm, place.choice.norm_options, options.d_model, (path / "norm").key()))),
      output_(register_module("output", std::make_shared<Linear>(options.d_model, options.d_model, path / "output"))) {
  if (numbers_) register_module("numbers", numbers_);
  const AttentionType& type = *place.choice.type;
  if (!type.takes_mask()) return;
  mask_ = register_module("mask", std::make_shared<MaskModel>(d_model_, path / "mask"));
  if (type.num_numbers() > type.of_scores().num_numbers())
    gate_ = register_module("gate", std::make_shared<Linear>(d_model_, num_heads_, path / "gate"));
}

Tensor MultiHeadAttention::heads_of(const Tensor& x) const {
  return x.view({x.size(0), num_heads_, d_model_ / num_heads_});
}

void MultiHeadAttention::take_parts(AttentionCall& call, const Tensor& x, int64_t parts) const {
  call.packed = x.view({x.size(0), parts, num_heads_, d_model_ / num_heads_});
  const std::vector<Tensor> all = call.packed.unbind(1);
  if (parts == 3) call.q = all.front();
  call.k = all[all.size() - 2];
  call.v = all.back();
}

AttentionCall MultiHeadAttention::new_call(const Ragged& x, const ForwardContext& context) const {
  AttentionCall call;
  call.queries = x.shape;
  const int64_t d_head = d_model_ / num_heads_;
  call.scale = 1 / std::sqrt(static_cast<double>(d_head));
  call.type = place_.choice.type.get();
  call.dropout = dropout_;
  call.layer = place_.layer;
  call.site = place_.site;
  add_numbers(call, x, context);
  return call;
}

void MultiHeadAttention::add_numbers(AttentionCall& call, const Ragged& x, const ForwardContext& context) const {
  if (!numbers_) return;
  const bool is_seen = context.probe != nullptr && context.probe->wants(call.layer, call.site);
  for (const RowNumber& number : numbers_->forward(x.values)) {
    call.numbers.push_back(number.values);
    if (context.regularizer != nullptr) context.regularizer->add(number, x.shape);
    if (!is_seen) continue;
    const Tensor seen = number.values.detach().to(at::kCPU, at::kDouble).reshape({-1, num_heads_}).mean(0);
    context.probe->see_number(call.layer, call.site, number.name, {seen.const_data_ptr<double>(), static_cast<size_t>(num_heads_)});
  }
}

Tensor MultiHeadAttention::mask_keys(const Tensor& x, const ForwardContext& context) {
  return mask_ ? mask_->keys(x, context) : Tensor();
}

void MultiHeadAttention::add_mask(AttentionCall& call, const Tensor& x, const Tensor& keys, const ForwardContext& context) {
  if (!mask_) return;
  call.mask_q = heads_of(mask_->queries(x, context));
  call.mask_k = keys;
  if (!gate_) return;
  const Tensor q = call.q.reshape({call.q.size(0), d_model_}).contiguous();
  const Tensor gate = context.is_mask_pass() ? gate_->constant(q, context) : gate_->forward(q, context);  // perturbed weights have no gate
  call.numbers.push_back(gate);
  if (context.probe == nullptr || !context.probe->wants(call.layer, call.site)) return;
  const Tensor seen = gate.detach().to(at::kCPU, at::kDouble).sigmoid().mean(0);
  context.probe->see_number(call.layer, call.site, "gate", {seen.const_data_ptr<double>(), static_cast<size_t>(num_heads_)});
}

Tensor MultiHeadAttention::projected(Linear& projection, const Ragged& x, const ForwardContext& context) const {
  return has_mask() ? projection.forward(x, context) : projection.rounded(x, context);
}

SubLayerOutput MultiHeadAttention::output_of(const AttentionCall& call, const ForwardContext& context) {
  const Tensor heads = attention(call, context).view({call.q.size(0), d_model_});  // (Tq, H, d) -> (Tq, D)
  if (context.probe != nullptr && context.probe->wants(call.layer, call.site)) context.probe->end_call(call.layer, call.site);
  return [this, normed = norm_->forward(heads), &context](const ResidualEnd& end) { return output_->forward(normed, end, context); };
}

namespace {

/// `count` of queries, keys and values in one product.
LinearOptions projections(int64_t count, const ModelOptions& options) {
  return {.blocks = count, .gain = options.attention_init_gain};
}

/// slots[new_slots[i]] = rows[i]; the elements of one row lie side by side in both.
void write_slots(const Tensor& slots, const Tensor& new_slots, const Tensor& rows) {
  if (!slots.is_cpu()) {
    slots.index_copy_(0, new_slots, rows);
    return;
  }
  const int64_t size = rows.element_size(), bytes = rows.numel() / std::max<int64_t>(1, rows.size(0)) * size;
  const int64_t slot_stride = slots.stride(0) * size, stride = rows.stride(0) * size;
  char* const to = static_cast<char*>(slots.mutable_data_ptr());
  const char* const from = static_cast<const char*>(rows.const_data_ptr());
  const int64_t* const slot = new_slots.const_data_ptr<int64_t>();
  at::parallel_for(0, rows.size(0), 64, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + slot[i] * slot_stride, from + i * stride, static_cast<size_t>(bytes));
  });
}

}  // namespace

SelfAttention::SelfAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path)
    : MultiHeadAttention(options, place, path),
      is_causal_(place.site == AttentionSite::kDecoderSelf),
      qkv_(register_module("qkv", std::make_shared<Linear>(d_model_, 3 * d_model_, path / "qkv", projections(3, options)))) {}

SubLayerOutput SelfAttention::forward(const Ragged& x, const ForwardContext& context) {
  AttentionCall call = new_call(x, context);
  take_parts(call, projected(*qkv_, x, context), 3);
  call.keys = std::make_shared<const KeyRange>(KeyRange::of(*x.shape));
  call.causal = is_causal_;
  if (has_mask()) add_mask(call, x.values, heads_of(mask_keys(x.values, context)), context);
  return output_of(call, context);
}

SubLayerOutput SelfAttention::step(const Tensor& x, SlotBuffer& buffer, const StepKeys& keys, const ForwardContext& context) {
  const Tensor qkv = qkv_->forward(x, context).view({x.size(0), 3, num_heads_, d_model_ / num_heads_});
  write_slots(buffer.keys_values.narrow(1, 0, 2), keys.new_slots, qkv.narrow(1, 1, 2));
  if (has_mask()) write_slots(buffer.keys_values.select(1, 2), keys.new_slots, heads_of(mask_keys(x, context)));
  AttentionCall call = new_call({x, keys.queries}, context);
  call.q = qkv.select(1, 0);
  call.k = buffer.keys_values.select(1, 0);
  call.v = buffer.keys_values.select(1, 1);
  call.keys = keys.keys;
  call.first_position = keys.positions;
  call.causal = is_causal_;
  if (has_mask()) add_mask(call, x, buffer.keys_values.select(1, 2), context);
  return output_of(call, context);
}

CrossAttention::CrossAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path)
    : MultiHeadAttention(options, place, path),
      query_(register_module("query", std::make_shared<Linear>(d_model_, d_model_, path / "query", projections(1, options)))),
      key_value_(
          register_module("key_value", std::make_shared<Linear>(d_model_, 2 * d_model_, path / "key_value", projections(2, options)))) {}

MemoryKeys CrossAttention::read(const Ragged& memory, const ForwardContext& context) {
  return {projected(*key_value_, memory, context), mask_keys(memory.values, context)};
}

SubLayerOutput CrossAttention::forward(const Ragged& x, const MemoryKeys& memory, const std::shared_ptr<const KeyRange>& keys,
                                       const ForwardContext& context) {
  AttentionCall call = new_call(x, context);
  call.q = heads_of(projected(*query_, x, context));
  take_parts(call, memory.keys_values, 2);
  call.keys = keys;
  call.rows_alike = !at::GradMode::is_enabled();  // whichever hypotheses of a sentence there are
  if (has_mask()) add_mask(call, x.values, heads_of(memory.mask_keys), context);
  return output_of(call, context);
}

}  // namespace lacuna

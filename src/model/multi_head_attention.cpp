#include "model/multi_head_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/alignment_guide.h"
#include "attention/registry.h"
#include "attention/regularizer.h"
#include "kernels/parallel.h"
#include "model/activation_watch.h"
#include "model/embedding.h"

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
  calibrated_ = CalibratedAttention::create(*this, place.choice.type, options, path);
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

AttentionCall MultiHeadAttention::new_call(const RaggedShapePtr& queries) const {
  AttentionCall call;
  call.queries = queries;
  const int64_t d_head = d_model_ / num_heads_;
  call.scale = 1 / std::sqrt(static_cast<double>(d_head));
  call.type = place_.choice.type.get();
  call.dropout = dropout_;
  call.layer = place_.layer;
  call.site = place_.site;
  call.causal = is_causal();
  call.rows_alike = place_.site == AttentionSite::kCross && !at::GradMode::is_enabled();  // whichever hypotheses of a sentence there are
  return call;
}

AttentionCall MultiHeadAttention::new_call(const Ragged& x, const ForwardContext& context) const {
  AttentionCall call = new_call(x.shape);
  add_numbers(call, x, context);
  return call;
}

void MultiHeadAttention::prepare(const RaggedShapePtr& queries, const RaggedShapePtr& keys, const ForwardContext& context,
                                 Upload& upload) const {
  if (calibrated_) return;  // its calls are of other types
  AttentionCall call = new_call(queries);
  call.keys = std::make_shared<const KeyRange>(KeyRange::of(*keys));
  const bool is_rounded = context.precision == Precision::kBf16 && at::GradMode::is_enabled();
  const Tensor weight = output_->parameters().front();
  const Tensor number = at::empty({1, 1, d_model_ / num_heads_}, weight.options().dtype(is_rounded ? at::kBFloat16 : weight.scalar_type()));
  call.q = number.expand({queries->num_tokens(), num_heads_, -1});
  call.k = call.v = number.expand({keys->num_tokens(), num_heads_, -1});
  prepare_attention(call, context, upload);
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
  return calibrated_ ? heads_of(calibrated_->keys(x, context)) : Tensor();
}

Tensor MultiHeadAttention::projected(Linear& projection, const NormedRows& x, const ForwardContext& context) const {
  return calibrated_ ? projection.forward(x, context) : projection.rounded(x, context);
}

namespace {

/// Shows what one attention reads or gives.
void show(const char* what, const Tensor& values, const AttentionPlace& place, const ForwardContext& context) {
  const std::string stack = place.site == AttentionSite::kEncoderSelf ? "encoder" : "decoder";
  const std::string module = place.site == AttentionSite::kCross ? ".cross_attention: " : ".self_attention: ";
  context.watch->see(stack + ".layers." + std::to_string(place.layer) + module + what, values);
}

}  // namespace

ResidualNorm MultiHeadAttention::output_of(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ResidualEnd& end,
                                           const ForwardContext& context) {
  if (context.watch != nullptr) {
    show("queries", call.q, place_, context);
    show("keys", call.k, place_, context);
    show("values", call.v, place_, context);
  }
  const Tensor of_heads = calibrated_ ? calibrated_->forward(call, x, mask_keys, context) : attention(call, context);
  const Tensor heads = of_heads.view({call.q.size(0), d_model_});  // (Tq, H, d) -> (Tq, D)
  if (context.watch != nullptr) show("output of the heads", heads, place_, context);
  if (context.probe != nullptr && context.probe->wants(call.layer, call.site)) context.probe->end_call(call.layer, call.site);
  return output_->forward(norm_->forward(heads), end, context);
}

ResidualNorm MultiHeadAttention::output_of(cuda::OneQueryStep step, const Tensor& x, const ResidualEnd& end,
                                           const ForwardContext& context) {
  step.type = &type();
  const int64_t d_head = d_model_ / num_heads_;
  step.scale = 1 / std::sqrt(static_cast<double>(d_head));
  if (numbers_)
    for (const RowNumber& number : numbers_->forward(x)) step.numbers.push_back(number.values);
  return output_->forward(norm_->forward(cuda::run_one_query(step).view({x.size(0), d_model_})), end, context);
}

std::optional<std::vector<float>> MultiHeadAttention::numbers_of_steps() const {
  if (calibrated_ || !norm_->takes_rows() || !output_->takes_rows()) return {};
  if (!numbers_) return std::vector<float>();
  std::vector<Tensor> of_heads;
  for (const RowNumber& number : numbers_->forward(at::zeros({1, d_model_}))) {
    if (number.values.dim() != 1) return {};
    of_heads.push_back(number.values.to(at::kFloat));
  }
  const Tensor numbers = at::stack(of_heads, 1).contiguous();  // [H, n]
  return std::vector<float>(numbers.const_data_ptr<float>(), numbers.const_data_ptr<float>() + numbers.numel());
}

void MultiHeadAttention::step_output(StepCall call, const std::vector<float>& numbers, StepRows& rows) const {
  const int64_t d_head = d_model_ / num_heads_;
  call.type = place_.choice.type.get();
  call.scale = 1 / std::sqrt(static_cast<double>(d_head));
  call.d_head = d_head;
  call.heads = {.count = static_cast<int>(num_heads_), .q = d_head, .k = d_head, .v = d_head, .numbers = std::ssize(numbers) / num_heads_};
  call.numbers = {numbers.empty() ? nullptr : numbers.data(), 0};
  call.context = rows.narrow;
  if (call.probe != nullptr && !call.probe->wants(place_.layer, place_.site)) call.probe = nullptr;
  call.layer = place_.layer;
  call.site = place_.site;
  run_step(call);
  output_->without_gradients(norm_->of_rows(rows.narrow, rows.count, rows.wide), rows.count, rows.output);
}

namespace {

/// Returns the options of a layer that projects to `count` of queries, keys and values.
LinearOptions projections(int64_t count, const ModelOptions& options) {
  return {.blocks = count, .gain = options.attention_init_gain};
}

}  // namespace

SelfAttention::SelfAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path)
    : MultiHeadAttention(options, place, path),
      qkv_(register_module("qkv", std::make_shared<Linear>(d_model_, 3 * d_model_, path / "qkv", projections(3, options)))),
      rotary_(options.positions == Positions::kRope ? std::make_unique<RotaryPositions>(options) : nullptr) {}

ResidualNorm SelfAttention::forward(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context) {
  AttentionCall call = new_call(x, context);
  const Tensor qkv = projected(*qkv_, x, context);
  take_parts(call, rotary_ ? rotary_->turned(qkv, positions_of(*x.shape)) : qkv, 3);
  call.keys = std::make_shared<const KeyRange>(KeyRange::of(*x.shape));
  return output_of(call, x.values, mask_keys(x.values, context), end, context);
}

Tensor SelfAttention::new_buffer(const Tensor& like) const {
  const at::ScalarType stored = calibrated_ ? qkv_->type() : qkv_->rounded_type();
  return at::empty({0, calibrated_ ? 3 : 2, num_heads_, d_model_ / num_heads_}, like.options().dtype(stored));
}

ResidualNorm SelfAttention::step(const NormedRows& x, const Tensor& buffer, const StepKeys& keys, const Tensor& new_slots,
                                 const ResidualEnd& end, const ForwardContext& context) {
  AttentionCall call = new_call(x, context);
  const Tensor rows = projected(*qkv_, x, context);
  const Tensor qkv = (rotary_ ? rotary_->turned(rows, keys.positions) : rows).view({-1, 3, num_heads_, d_model_ / num_heads_});
  buffer.narrow(1, 0, 2).index_copy_(0, new_slots, qkv.narrow(1, 1, 2));
  if (calibrated_) buffer.select(1, 2).index_copy_(0, new_slots, mask_keys(x.values, context));
  call.q = qkv.select(1, 0);
  call.k = buffer.select(1, 0);
  call.v = buffer.select(1, 1);
  call.keys = keys.keys;
  call.first_position = keys.positions;
  return output_of(call, x.values, calibrated_ ? buffer.select(1, 2) : Tensor(), end, context);
}

ResidualNorm SelfAttention::step(const NormedRows& x, const Tensor& buffer, const DeviceStep& there, DeviceSlots& slots,
                                 const ResidualEnd& end, const ForwardContext& context) {
  const Tensor qkv = projected(*qkv_, x, context).view({-1, 3, num_heads_, d_model_ / num_heads_});
  const Rotation rotation = rotary_ ? rotary_->table(there.most_keys, at::kFloat, buffer.device()) : Rotation();
  cuda::OneQueryStep step;
  step.q = qkv.select(1, 0);
  step.new_k = qkv.select(1, 1);
  step.new_v = qkv.select(1, 2);
  step.k = buffer.select(1, 0);
  step.v = buffer.select(1, 1);
  step.num_keys = there.num_keys;
  step.most_keys = there.most_keys;
  step.slots = there.slots;
  step.patterns = slots.patterns(type(), num_heads_);
  if (rotary_) step.rotation = &rotation;
  return output_of(std::move(step), x.values, end, context);
}

void SelfAttention::step(const float* x, const Tensor& buffer, const StepKeys& keys, const std::vector<float>& numbers,
                         StepRows& rows) const {
  constexpr int64_t kRowsToShare = 64;  // between threads
  const int64_t row = 3 * d_model_, slot = 2 * d_model_;
  float *const qkv = rows.wide, *const slots = buffer.mutable_data_ptr<float>();
  qkv_->without_gradients(x, rows.count, qkv);
  if (rotary_) rotary_->turn(qkv, num_heads_, keys.positions);
  for_parts(rows.count, kRowsToShare, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy_n(qkv + i * row + d_model_, slot, slots + keys.new_slots[static_cast<size_t>(i)] * slot);
  });
  step_output({.causal = is_causal(),
               .q = {qkv, row},
               .k = {slots, slot},
               .v = {slots + d_model_, slot},
               .queries = keys.queries,
               .first_position = keys.positions,
               .keys = *keys.keys},
              numbers, rows);
}

CrossAttention::CrossAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path)
    : MultiHeadAttention(options, place, path),
      query_(register_module("query", std::make_shared<Linear>(d_model_, d_model_, path / "query", projections(1, options)))),
      key_value_(
          register_module("key_value", std::make_shared<Linear>(d_model_, 2 * d_model_, path / "key_value", projections(2, options)))) {}

MemoryKeys CrossAttention::read(const Ragged& memory, const ForwardContext& context) {
  return {projected(*key_value_, {memory}, context), mask_keys(memory.values, context)};
}

ResidualNorm CrossAttention::forward(const NormedRows& x, const MemoryKeys& memory, const std::shared_ptr<const KeyRange>& keys,
                                     const ResidualEnd& end, const ForwardContext& context) {
  AttentionCall call = new_call(x, context);
  call.q = heads_of(projected(*query_, x, context));
  take_parts(call, memory.keys_values, 2);
  call.keys = keys;
  if (context.guide != nullptr && context.guide->wants(call.layer)) context.guide->see(call, context);
  return output_of(call, x.values, memory.mask_keys, end, context);
}

ResidualNorm CrossAttention::step(const NormedRows& x, const MemoryKeys& memory, const DeviceStep& there, const ResidualEnd& end,
                                  const ForwardContext& context) {
  const Tensor keys_values = memory.keys_values.view({-1, 2, num_heads_, d_model_ / num_heads_});
  cuda::OneQueryStep step;
  step.q = heads_of(projected(*query_, x, context));
  step.k = keys_values.select(1, 0);
  step.v = keys_values.select(1, 1);
  step.num_keys = there.num_memory;
  step.most_keys = there.most_memory;
  step.first_key = there.first_of_memory;
  return output_of(std::move(step), x.values, end, context);
}

void CrossAttention::step(const float* x, const MemoryKeys& memory, const std::vector<int32_t>& queries, const KeyRange& keys,
                          const std::vector<float>& numbers, AttentionProbe* probe, StepRows& rows) const {
  static const std::vector<int32_t> kFromZero;
  const int64_t row = 2 * d_model_;
  const float* const keys_values = memory.keys_values.const_data_ptr<float>();
  query_->without_gradients(x, rows.count, rows.wide);
  step_output({.q = {rows.wide, d_model_},
               .k = {keys_values, row},
               .v = {keys_values + d_model_, row},
               .queries = queries,
               .first_position = kFromZero,
               .keys = keys,
               .probe = probe},
              numbers, rows);
}

}  // namespace lacuna

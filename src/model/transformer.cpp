#include "model/transformer.h"

#include <algorithm>
#include <optional>

#include "attention/alignment_guide.h"
#include "attention/probe.h"
#include "attention/regularizer.h"
#include "base/device.h"
#include "kernels/packed_weight.h"
#include "kernels/projection_loss.h"
#include "kernels/shape_lists.h"
#include "model/activation_watch.h"
#include "model/calibrated/calibrated_attention.h"
#include "model/embedding.h"
#include "model/encoder_decoder.h"

namespace lacuna {
namespace {

constexpr int64_t kBos = 1;

/// Throws ConfigError if sizes do not fit together.
const ModelOptions& checked(const ModelOptions& options, const VocabularySizes& sizes) {
  if (options.d_model % options.num_heads != 0)
    throw ConfigError("model.num_heads is " + std::to_string(options.num_heads) + "; it must divide model.d_model, which is " +
                      std::to_string(options.d_model) + ". Choose, say, heads of 64 features");
  if (options.tie_embeddings == TieEmbeddings::kAll && !(sizes.shared && sizes.src == sizes.tgt))
    throw ConfigError(
        "model.tie_embeddings is all, but source and target have vocabularies of their own (those of train.init_from, where a model is "
        "taken up). Set model.tie_embeddings to decoder or none, or give both sides one vocabulary: data.shared_vocab: true");
  return options;
}

/// Returns the decoder's input: bos and the sentence without its last token.
Ragged shifted_right(const Ragged& tgt) {
  Tensor input = at::empty_like(tgt.values);
  const int64_t tokens = tgt.values.size(0);
  if (tokens > 1) input.narrow(0, 1, tokens - 1).copy_(tgt.values.narrow(0, 0, tokens - 1));
  input.index_fill_(0, lists_on(input.device(), tgt.shape).first_rows, kBos);
  return tgt.with(input);
}

/// Records the cross-attention weights of one layer in one decoding step. `queries`: the borders between the hypotheses of
/// one sentence and the next.
class AlignmentProbe : public AttentionProbe {
 public:
  AlignmentProbe(int layer, int64_t num_heads, std::vector<int32_t> queries)
      : layer_(layer), num_heads_(num_heads), queries_(std::move(queries)), weights_(static_cast<size_t>(num_heads * queries_.back())) {}

  bool wants(int layer, AttentionSite site) const override { return layer == layer_ && site == AttentionSite::kCross; }
  void see(int /*layer*/, AttentionSite /*site*/, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    std::vector<float>& row = weights_[static_cast<size_t>((queries_[static_cast<size_t>(sentence)] + query) * num_heads_ + head)];
    for (size_t j = 0; j < weights.size(); ++j) {
      const auto position = static_cast<size_t>(key_positions[j]);
      if (row.size() <= position) row.resize(position + 1, 0);
      row[position] = weights[j];
    }
  }
  /// Returns the weights [N][source length] of a head; -1 = averaged over all heads.
  std::vector<std::vector<float>> of_head(int head) const {
    const auto heads = static_cast<size_t>(num_heads_);
    const size_t averaged = head < 0 ? heads : 1;
    std::vector<std::vector<float>> rows(weights_.size() / heads);
    for (auto i = static_cast<size_t>(std::max(head, 0)); i < weights_.size(); i += heads / averaged) {
      std::vector<float>& row = rows[i / heads];
      row.resize(std::max(row.size(), weights_[i].size()), 0);
      for (size_t j = 0; j < weights_[i].size(); ++j) row[j] += weights_[i][j] / static_cast<float>(averaged);
    }
    return rows;
  }

 private:
  int layer_;
  int64_t num_heads_;
  std::vector<int32_t> queries_;             // [B + 1]
  std::vector<std::vector<float>> weights_;  // [N * heads], each written by one thread
};

/// Adds to the loss what is summed over the target tokens beside it; nothing if that is undefined.
void add_penalty(LossSums& sums, const Tensor& penalty) {
  if (!penalty.defined()) return;
  sums.loss = sums.loss + penalty;
  sums.penalty = sums.penalty.defined() ? sums.penalty + penalty.detach() : penalty.detach();
}

template <class F>
void for_each_packed(const torch::nn::Module& model, F f) {
  for (const auto& module : model.modules()) {
    if (auto* linear = dynamic_cast<Linear*>(module.get())) f(linear->packed());
    if (auto* table = dynamic_cast<EmbeddingTable*>(module.get())) f(table->packed());
  }
}

}  // namespace

void LossSums::backward() const {
  loss.backward();
  if (has_auxiliary()) auxiliary.objective.backward();
}

struct Transformer::Parts {
  ModelOptions options;
  VocabularySizes sizes;
  AttentionPlan attention;
  std::unique_ptr<AuxiliaryLoss> auxiliary;
  std::shared_ptr<EmbeddingTable> src_table, tgt_table;
  OutputProjection output;
  std::shared_ptr<PositionTable> src_positions, tgt_positions;
  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<Decoder> decoder;
  int64_t step = 0;
  Precision precision = Precision::kFp32;  // of products without gradients

  Parts(const ModelOptions& given, const VocabularySizes& vocabularies, const ParameterPath& path)
      : options(checked(given, vocabularies)),
        sizes(vocabularies),
        attention(resolve_attention(options)),
        src_positions(std::make_shared<PositionTable>(options, path / "src_positions")),
        tgt_positions(std::make_shared<PositionTable>(options, path / "tgt_positions")),
        encoder(std::make_shared<Encoder>(options, attention, path / "encoder")),
        decoder(std::make_shared<Decoder>(options, attention, path / "decoder")) {
    const auto table = [&](int64_t size, const char* name) { return std::make_shared<EmbeddingTable>(size, options.d_model, path / name); };
    const bool all = options.tie_embeddings == TieEmbeddings::kAll;
    src_table = table(sizes.src, all ? "embedding" : "src_embedding");
    tgt_table = all ? src_table : table(sizes.tgt, "tgt_embedding");
    output.table = options.tie_embeddings == TieEmbeddings::kNone ? table(sizes.tgt, "output") : tgt_table;
  }

  Embedding src_embedding() const { return {src_table, src_positions, options.dropout, Stack::kEncoder}; }
  Embedding tgt_embedding() const {
    const int64_t zero_id = options.decoder_start == DecoderStart::kZero ? kBos : kNoId;
    return {tgt_table, tgt_positions, options.dropout, Stack::kDecoder, zero_id};
  }

  /// A step of a cache that has step rows: everything from the embedding to the logits is in its memory.
  Logits step_on_rows(const std::vector<int32_t>& tokens, SlotCache& cache, const StepKeys& keys, AttentionProbe* probe) const {
    StepRows& rows = *cache.step_rows();
    rows.prepare(tokens);
    tgt_embedding().at_positions(rows.ids, keys.positions, rows.residual);
    const float* const hidden = decoder->step(cache, keys, probe);
    if (cache.shortlisted() == nullptr) return Logits(hidden, rows.count, output.table->projection(), output.bias);
    return cache.shortlisted()->logits(at::from_blob(const_cast<float*>(hidden), {rows.count, options.d_model}), cache.sentences(), output);
  }
  Tensor embedded(const std::vector<int32_t>& tokens, const StepKeys& keys, const DeviceStep* there) const {
    if (there != nullptr) return tgt_embedding().at_positions(there->tokens, there->positions, there->most_keys);
    return tgt_embedding().at_positions(tensor_of(tokens, tgt_table->weight().device()).to(at::kLong), keys.positions);
  }
  /// Any other step: on a GPU, in double, or with an attention that needs tensors.
  Logits step_on_tensors(const std::vector<int32_t>& tokens, SlotCache& cache, const StepKeys& keys, const ForwardContext& context) const {
    const DeviceStep* const there = cache.append_on_device(tokens);
    const Tensor hidden = decoder->step(embedded(tokens, keys, there), cache, keys, there, context);
    if (cache.shortlisted() == nullptr) return Logits(hidden, output.table->projection(), output.bias);
    return cache.shortlisted()->logits(hidden, cache.sentences(), output);
  }
};

Transformer::Transformer(const ModelOptions& options, const VocabularySizes& sizes, uint64_t seed)
    : parts_(std::make_shared<Parts>(options, sizes, ParameterPath(seed))) {
  if (parts_->src_table == parts_->tgt_table) {
    register_module("embedding", parts_->src_table);
  } else {
    register_module("src_embedding", parts_->src_table);
    register_module("tgt_embedding", parts_->tgt_table);
  }
  std::shared_ptr<torch::nn::Module> output = parts_->output.table;
  if (output == parts_->tgt_table) output = options.output_bias ? std::make_shared<torch::nn::Module>() : nullptr;
  if (output) register_module("output", output);
  if (options.output_bias) parts_->output.bias = output->register_parameter("bias", at::zeros({sizes.tgt}, at::kFloat));
  register_module("src_positions", parts_->src_positions);
  register_module("tgt_positions", parts_->tgt_positions);
  register_module("encoder", parts_->encoder);
  register_module("decoder", parts_->decoder);
  parts_->auxiliary = make_mask_loss(parts_->attention, *this);
}

LossSums Transformer::loss(const Ragged& src, const Ragged& tgt, double label_smoothing, const ForwardContext& context,
                           const GuidingLinks& links) {
  if (at::GradMode::is_enabled()) parts_->output.table->packed().drop();  // it may be about to change
  Regularizer regularizer;
  ForwardContext gathering = context;
  if (context.training) gathering.regularizer = &regularizer;
  AlignmentGuide guide(links.guided, links.weight, links.links);
  if (context.training && links.weight > 0 && !links.links.empty()) gathering.guide = &guide;
  const Ragged memory = encode(src, gathering);
  LossSums sums = loss_of(memory, tgt, label_smoothing, gathering);
  add_penalty(sums, regularizer.sum(*tgt.shape));
  add_penalty(sums, guide.loss());
  const auto& auxiliary = parts_->auxiliary;
  if (auxiliary && context.training && at::GradMode::is_enabled() && auxiliary->is_due(context.step)) {
    const Ragged constant = memory.with(memory.values.detach());
    const auto loss = [&](const ForwardContext& other) { return loss_of(constant, tgt, label_smoothing, other).loss; };
    sums.auxiliary = auxiliary->sums(loss, sums.tokens, context);
  }
  return sums;
}

LossSums Transformer::loss_of(const Ragged& memory, const Ragged& tgt, double label_smoothing, const ForwardContext& context) {
  const Ragged hidden = decode(memory, tgt, context);
  const ProjectionLoss sums =
      projection_loss(hidden.values, output_weight(), tgt.values, label_smoothing, context.precision, output_bias());
  return {sums.loss, sums.nll, sums.correct, tgt.shape->num_tokens()};
}

void Transformer::prepare(const RaggedShapePtr& src, const RaggedShapePtr& tgt, const ForwardContext& context, Upload& upload) const {
  parts_->encoder->prepare(src, context, upload);
  parts_->decoder->prepare(src, tgt, context, upload);
}

ForwardContext Transformer::at_step(ForwardContext context) const {
  if (context.training) return context;
  context.step = parts_->step;
  context.decoding = parts_->precision;
  return context;
}

void Transformer::set_step(int64_t step) {
  parts_->step = step;
}

Ragged Transformer::encode(const Ragged& src, const ForwardContext& context) {
  const Ragged embedded = parts_->src_embedding().forward(src, context);
  if (context.watch != nullptr) context.watch->see("encoder: embedded source tokens", embedded.values);
  return parts_->encoder->forward(embedded, context);
}

Ragged Transformer::decode(const Ragged& memory, const Ragged& tgt, const ForwardContext& given) {
  const ForwardContext context = at_step(given);
  const Ragged embedded = parts_->tgt_embedding().forward(shifted_right(tgt), context);
  if (context.watch != nullptr) context.watch->see("decoder: embedded target tokens", embedded.values);
  return parts_->decoder->forward(embedded, memory, context);
}

const Tensor& Transformer::output_weight() const {
  return parts_->output.table->weight();
}

const Tensor& Transformer::output_bias() const {
  return parts_->output.bias;
}

Tensor Transformer::token_log_probs(const Ragged& src, const Ragged& tgt, const ForwardContext& context) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = decode(encode(src, at_step(context)), tgt, context).values;
  const Tensor targets = tgt.values.to(at::kCPU).to(at::kInt).contiguous();
  const int32_t* const first = targets.const_data_ptr<int32_t>();
  return at::tensor(Logits(hidden, parts_->output.table->projection(), output_bias()).of({first, first + targets.numel()}), at::kFloat);
}

std::unique_ptr<DecoderCache> Transformer::start(const Ragged& src) {
  const at::NoGradGuard no_gradients;
  return parts_->decoder->start(encode(src, at_step({})));
}

Logits Transformer::step(const std::vector<int32_t>& tokens, DecoderCache& cache) {
  const at::NoGradGuard no_gradients;
  auto& slots = dynamic_cast<SlotCache&>(cache);
  if (static_cast<int64_t>(tokens.size()) != slots.num_hypotheses())
    throw ShapeError(std::to_string(tokens.size()) + " tokens for " + std::to_string(slots.num_hypotheses()) + " hypotheses");
  const AlignmentSource aligned = slots.alignment_source();
  std::optional<AlignmentProbe> probe;
  if (aligned.layer >= 0) probe.emplace(aligned.layer, parts_->options.num_heads, slots.memory_queries());
  ForwardContext context = at_step({});
  context.probe = probe ? &*probe : nullptr;
  const StepKeys& keys = slots.append();
  Logits logits = slots.step_rows() != nullptr ? parts_->step_on_rows(tokens, slots, keys, context.probe)
                                               : parts_->step_on_tensors(tokens, slots, keys, context);
  if (probe) slots.record_alignment(probe->of_head(aligned.head));
  return logits;
}

const AuxiliaryLoss* Transformer::auxiliary_loss() const {
  return parts_->auxiliary.get();
}

std::vector<ParameterRange> Transformer::parameter_ranges() const {
  std::vector<ParameterRange> ranges;
  for (const auto& module : named_modules("", /*include_self=*/false))
    if (const auto* numbers = dynamic_cast<const RowNumbers*>(module.value().get()))
      for (const ParameterRange& range : numbers->ranges())
        ranges.push_back({module.key() + "." + range.name, range.lowest, range.highest});
  return ranges;
}

void Transformer::weights_changed() {
  for_each_packed(*this, [](PackedCache& packed) { packed.drop(); });
}

void Transformer::set_precision(Precision precision) {
  parts_->precision = precision;
  for_each_packed(*this, [=](PackedCache& packed) { packed.set_precision(precision); });
}

void Transformer::round_to(Precision precision) {
  set_precision(precision);
  for (const auto& module : modules())
    if (auto* table = dynamic_cast<EmbeddingTable*>(module.get())) table->round_to(precision);
}

void Transformer::keep_rounded(const std::string& parameter, Precision precision) {
  if (!parameter.ends_with(".weight")) return;
  std::shared_ptr<torch::nn::Module> module;
  for (size_t begin = 0, end = 0; (end = parameter.find('.', begin)) != std::string::npos; begin = end + 1) {
    const auto children = module ? module->named_children() : named_children();
    module = children[parameter.substr(begin, end - begin)];
  }
  if (auto* linear = dynamic_cast<Linear*>(module.get())) linear->keep_packed(precision);
  if (auto* table = dynamic_cast<EmbeddingTable*>(module.get())) table->round_to(precision);
}

at::Device Transformer::device() const {
  return output_weight().device();
}

const ModelOptions& Transformer::options() const {
  return parts_->options;
}

const VocabularySizes& Transformer::sizes() const {
  return parts_->sizes;
}

int64_t Transformer::max_positions() const {
  return parts_->tgt_positions->limit();
}

}  // namespace lacuna

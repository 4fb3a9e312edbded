#include "bench/attention_times.h"

#include "bench/sparse_scores.h"
#include "speed/timing.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

Json line_of(const TypeWithPattern& entry, const AttentionShape& shape, const Timed& measured, const Timed& softmax, const Timed& aten) {
  return {{"length", shape.length},     {"dtype", shape.dtype == at::kBFloat16 ? "bf16" : "fp32"},
          {"type", entry.type},         {"pattern", entry.pattern},
          {"ms", measured.median_ms()}, {"softmax_ms", softmax.median_ms()},
          {"aten_ms", aten.median_ms()}};
}

/// The operation until its gradients are there.
template <class Op>
Timed timed_op(std::shared_ptr<Op> op, at::Device device) {
  return {[op = std::move(op), device] {
    op->run();
    wait_for(device);
  }};
}

std::shared_ptr<AttentionOp> softmax_op(const AttentionShape& shape, const AttentionInputs& inputs) {
  return std::make_shared<AttentionOp>(attention_choice(ConfigNode::scalar("softmax"), shape.heads), shape, inputs);
}

/// Every entry on the same scores.
std::vector<Json> times_on_same_scores(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, int64_t rounds) {
  const AttentionInputs inputs = random_inputs(shape, 1);
  std::vector<Timed> all = {timed_op(softmax_op(shape, inputs), shape.device),
                            timed_op(std::make_shared<AtenSoftmaxOp>(shape, inputs), shape.device)};
  for (const TypeWithPattern& entry : entries)
    all.push_back(timed_op(std::make_shared<AttentionOp>(attention_choice(entry.attention, shape.heads), shape, inputs), shape.device));
  time_in_turn(all, rounds);
  std::vector<Json> lines;
  for (size_t i = 0; i < entries.size(); ++i) lines.push_back(line_of(entries[i], shape, all[i + 2], all[0], all[1]));
  return lines;
}

/// An entry on scores of its own, with softmax beside it.
Json times_on_sparse_scores(const TypeWithPattern& entry, const AttentionShape& shape, double zeros, int64_t rounds) {
  const SparseScores scores = sparse_scores(entry.attention, shape, random_inputs(shape, 1), zeros);
  const AttentionChoice choice = attention_choice(scores.attention, shape.heads);
  std::vector<Timed> all = {timed_op(softmax_op(shape, scores.inputs), shape.device),
                            timed_op(std::make_shared<AtenSoftmaxOp>(shape, scores.inputs), shape.device),
                            timed_op(std::make_shared<AttentionOp>(choice, shape, scores.inputs), shape.device)};
  time_in_turn(all, rounds);
  Json line = line_of(entry, shape, all[2], all[0], all[1]);
  line["zero_share"] = scores.zero_share;
  return line;
}

}  // namespace

bool core_takes(const AttentionShape& shape) {
  AttentionShape least = shape;
  least.sentences = least.length = 1;
  return softmax_op(least, random_inputs(least, 1))->has_fused_core();
}

std::vector<Json> attention_times(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, double zeros, int64_t rounds) {
  if (zeros <= 0) return times_on_same_scores(entries, shape, rounds);
  std::vector<Json> lines;
  lines.reserve(entries.size());
  for (const TypeWithPattern& entry : entries) lines.push_back(times_on_sparse_scores(entry, shape, zeros, rounds));
  return lines;
}

}  // namespace lacuna

#include <vector>

#include "attention/call.h"
#include "attention/registry.h"

// The core in ATen operations, sentence by sentence and head by head. Only the row map is not ATen's but the type's,
// on plain rows of double. The types' maths is held against other algorithms in tests/contract.
namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Which keys each query of one sentence and head sees.
struct Rows : torch::CustomClassHolder {
  const AttentionType* type;
  bool training;
  std::vector<int32_t> positions;             // [queries]
  std::vector<std::vector<int32_t>> visible;  // [queries] positions of keys
};

/// Calls `work` for each row, as plain doubles.
template <class Work>
void for_each_row(const Rows& rows, const Tensor& numbers, Work work) {
  const Tensor plain_numbers = numbers.to(at::kCPU, at::kDouble).contiguous();  // (queries, numbers)
  const int count = static_cast<int>(plain_numbers.size(1));
  for (size_t i = 0; i < rows.visible.size(); ++i) {
    const auto& visible = rows.visible[i];
    if (visible.empty()) continue;
    const std::vector<double> positions(visible.begin(), visible.end());
    std::vector<double> scratch(visible.size());
    types::RowCall<double> row{};
    row.positions = positions.data();
    row.scratch = scratch.data();
    row.length = static_cast<int>(visible.size());
    row.context.training = rows.training;
    row.context.position = rows.positions[i];
    row.context.num_numbers = count;
    row.context.numbers = plain_numbers.data_ptr<double>() + static_cast<int64_t>(i) * count;
    work(static_cast<int64_t>(i), visible, row);
  }
}

std::vector<double> gathered(const at::TensorAccessor<double, 2>& matrix, int64_t i, const std::vector<int32_t>& columns) {
  std::vector<double> row;
  row.reserve(columns.size());
  for (const int32_t j : columns) row.push_back(matrix[i][j]);
  return row;
}

/// The node of autograd: from scores (queries, keys) and numbers (queries, numbers) to weights (queries, keys), 0 at
/// keys that are not visible.
struct RowMapFunction : torch::autograd::Function<RowMapFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Tensor& numbers, const c10::intrusive_ptr<Rows>& rows) {
    const Tensor from = scores.to(at::kCPU, at::kDouble).contiguous();
    const Tensor weights = at::zeros_like(from);
    const auto from_values = from.accessor<double, 2>();
    auto weight_values = weights.accessor<double, 2>();
    for_each_row(*rows, numbers, [&](int64_t i, const std::vector<int32_t>& visible, types::RowCall<double>& row) {
      std::vector<double> values = gathered(from_values, i, visible);
      row.weights = values.data();
      rows->type->entry().plain.forward(rows->type->options(), row);
      for (size_t j = 0; j < visible.size(); ++j) weight_values[i][visible[j]] = values[j];
    });
    context->save_for_backward({from, weights, numbers});
    context->saved_data["rows"] = at::IValue::make_capsule(rows);
    return weights.to(scores.options());
  }

  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const auto rows = c10::static_intrusive_pointer_cast<Rows>(context->saved_data["rows"].toCapsule());
    const Tensor of_weights = outputs[0].to(at::kCPU, at::kDouble).contiguous();
    const Tensor of_scores = at::zeros_like(of_weights), of_numbers = at::zeros(saved[2].sizes(), at::kDouble);
    const auto scores = saved[0].accessor<double, 2>(), weights = saved[1].accessor<double, 2>(), from = of_weights.accessor<double, 2>();
    auto to = of_scores.accessor<double, 2>();
    for_each_row(*rows, saved[2], [&](int64_t i, const std::vector<int32_t>& visible, types::RowCall<double>& row) {
      std::vector<double> z = gathered(scores, i, visible), p = gathered(weights, i, visible), g = gathered(from, i, visible);
      row.scores = z.data();
      row.weights = p.data();
      row.gradient = g.data();
      row.context.number_gradients = of_numbers.data_ptr<double>() + i * row.context.num_numbers;
      rows->type->entry().plain.backward(rows->type->options(), row);
      for (size_t j = 0; j < visible.size(); ++j) to[i][visible[j]] = g[j];
    });
    return {of_scores.to(outputs[0].options()), of_numbers.to(saved[2].options()), Tensor()};
  }
};

/// Returns the call with its numbers in double, so that their gradients are summed in double.
AttentionCall with_numbers_in_double(AttentionCall call) {
  for (Tensor& number : call.numbers) number = number.to(at::kDouble);
  return call;
}

/// Returns the numbers of one sentence and head: (queries, numbers).
Tensor numbers_of(const AttentionCall& call, int64_t begin, int64_t queries, int64_t head) {
  std::vector<Tensor> columns;
  for (const Tensor& number : call.numbers)
    columns.push_back(number.dim() == 1 ? number[head].expand({queries}) : number.narrow(0, begin, queries).select(1, head));
  return columns.empty() ? at::empty({queries, 0}, at::kDouble) : at::stack(columns, 1);
}

Tensor dropout_factors(const AttentionDropout& dropout, const AttentionCall& call, int64_t b, int64_t queries, int64_t keys) {
  Tensor factors = at::empty({queries, keys}, at::kDouble);
  for (int32_t i = 0; i < queries; ++i)
    dropout.factors(query_position(call, b, i), 0, static_cast<int32_t>(keys), 1, factors.data_ptr<double>() + i * keys);
  return factors;
}

void show(const AttentionCall& call, const ForwardContext& context, int64_t b, int64_t head, const Rows& rows, const Tensor& weights) {
  for (size_t i = 0; i < rows.visible.size(); ++i) {
    const std::vector<int32_t>& visible = rows.visible[i];
    if (visible.empty()) continue;
    const Tensor index = at::tensor(std::vector<int64_t>(visible.begin(), visible.end()), at::kLong);
    const Tensor row = weights.detach()[static_cast<int64_t>(i)].to(at::kCPU, at::kFloat).index_select(0, index).contiguous();
    context.probe->see(call.layer, call.site, static_cast<int>(head), b, query_position(call, b, static_cast<int32_t>(i)),
                       {row.const_data_ptr<float>(), visible.size()}, visible);
  }
}

c10::intrusive_ptr<Rows> visible_rows(const AttentionCall& call, const ForwardContext& context, int64_t b, int64_t head) {
  auto rows = c10::make_intrusive<Rows>();
  rows->type = call.type;
  rows->training = context.training;
  std::vector<KeySegment> segments;
  for (int32_t i = 0; i < call.queries->length(b); ++i) {
    rows->positions.push_back(query_position(call, b, i));
    visible_keys(call, b, head, rows->positions.back(), segments);
    append_positions(segments, rows->visible.emplace_back());
  }
  return rows;
}

/// Returns the rows of k or v of one sentence and head: (keys, d).
Tensor keys_of(const AttentionCall& call, const Tensor& rows, int64_t b, int64_t head) {
  const int64_t begin = call.keys->begin[static_cast<size_t>(b)], count = call.keys->count[static_cast<size_t>(b)];
  if (call.keys->slots.empty()) return rows.narrow(0, begin, count).select(1, head);
  const auto first = call.keys->slots.begin() + begin;
  const Tensor index = at::tensor(std::vector<int64_t>(first, first + count), at::TensorOptions(rows.device()).dtype(at::kLong));
  return rows.select(1, head).index_select(0, index);
}

/// Returns the context of one sentence and head: (queries, d).
Tensor attend(const AttentionCall& call, const ForwardContext& context, int64_t b, int64_t head) {
  const int64_t begin = call.queries->begin(b), queries = call.queries->length(b);
  const Tensor k = keys_of(call, call.k, b, head), v = keys_of(call, call.v, b, head);
  const auto rows = visible_rows(call, context, b, head);
  const Tensor scores = call.q.narrow(0, begin, queries).select(1, head).matmul(k.t()) * call.scale;  // (queries, d) x (d, keys)
  Tensor weights = RowMapFunction::apply(scores, numbers_of(call, begin, queries, head), rows);
  if (is_probed(call, context)) show(call, context, b, head, *rows, weights);
  const AttentionDropout dropout = dropout_of(call, context, b, head);
  if (dropout.is_active()) weights = weights * dropout_factors(dropout, call, b, queries, k.size(0)).to(weights.options());
  return weights.matmul(v);  // (queries, keys) x (keys, d)
}

}  // namespace

Tensor attention_reference(const AttentionCall& given, const ForwardContext& context) {
  check_shapes(given);
  const AttentionCall call = with_numbers_in_double(given);
  std::vector<Tensor> heads;  // (Tq, d) each
  for (int64_t head = 0; head < call.q.size(1); ++head) {
    std::vector<Tensor> sentences;
    for (int64_t b = 0; b < call.queries->num_sentences(); ++b) sentences.push_back(attend(call, context, b, head));
    heads.push_back(sentences.empty() ? call.q.select(1, head) : at::cat(sentences, 0));
  }
  return at::stack(heads, 1);  // (Tq, H, d)
}

}  // namespace lacuna

#include "kernels/embedding.h"

#include <algorithm>
#include <numeric>

#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
void embed_rows(const Tensor& table, const int64_t* ids, int64_t count, double scale, const Tensor& position_table,
                const int32_t* positions, const DropoutRows& dropout, int64_t zero_id, T* to) {
  const EmbedRows<T> args = {.columns = table.size(1),
                             .ids = ids,
                             .positions = positions,
                             .table = data_of<T>(table),
                             .position_table = data_of<T>(position_table),
                             .scale = static_cast<T>(scale),
                             .zero_id = zero_id,
                             .dropout = dropout,
                             .result = to};
  for_rows(row_kernels<T>().embed, args, count);
}

Tensor forward_on_gpu(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
                      const Dropout& dropout, int64_t zero_id) {
  Tensor result = at::empty({ids.size(0), table.size(1)}, table.options().requires_grad(false));
  const EmbedRows<float> args = {.columns = table.size(1),
                                 .ids = data_of<int64_t>(ids),
                                 .positions = data_of<int32_t>(positions),
                                 .table = data_of<float>(table),
                                 .position_table = data_of<float>(position_table),
                                 .scale = static_cast<float>(scale),
                                 .zero_id = zero_id,
                                 .dropout = dropout.rows(table.device()),
                                 .result = mutable_data_of<float>(result),
                                 .table_rows = table.size(0)};
  with_gpu_kernels(table, [&](const gpu::Kernels& kernels, void* stream) { return kernels.embed(args, ids.size(0), stream); });
  return result;
}

Tensor forward_pass(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
                    const Dropout& dropout, int64_t zero_id) {
  if (has_gpu_rows(table)) return forward_on_gpu(table, ids, scale, position_table, positions, dropout, zero_id);
  require_ids(data_of<int64_t>(ids), ids.numel(), table.size(0));
  Tensor result = at::empty({ids.size(0), table.size(1)}, table.options().requires_grad(false));
  with_scalar_of(table, [&](auto t) {
    using T = decltype(t);
    embed_rows<T>(table, data_of<int64_t>(ids), ids.size(0), scale, position_table, data_of<int32_t>(positions), dropout.rows(), zero_id,
                  mutable_data_of<T>(result));
  });
  return result;
}

/// Sums the rows of `gradient` that share a key of `keys` [T] into a table of `size` rows. Rows are summed in order,
/// keys in parallel.
Tensor sum_by_key(const Tensor& gradient, const std::vector<int64_t>& keys, int64_t size, double scale) {
  std::vector<int64_t> rows(keys.size()), starts, ids;
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)]; });
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t key = keys[static_cast<size_t>(rows[i])];
    if (!ids.empty() && ids.back() == key) continue;
    ids.push_back(key);
    starts.push_back(static_cast<int64_t>(i));
  }
  starts.push_back(static_cast<int64_t>(rows.size()));
  Tensor result = at::zeros({size, gradient.size(1)}, gradient.options());
  with_scalar_of(gradient, [&](auto t) {
    using T = decltype(t);
    const GatherSums<T> args = {gradient.size(1),      data_of<T>(gradient),      rows.data(), starts.data(), ids.data(),
                                static_cast<T>(scale), mutable_data_of<T>(result)};
    for_rows(row_kernels<T>().gather_sums, args, static_cast<int64_t>(ids.size()));
  });
  return result;
}

/// Does that for rows of dropout(gradient) on a GPU, where keys [T] lie too; none is added for the key `left_out`.
Tensor sum_by_key_on_gpu(const Tensor& gradient, const Dropout& dropout, const Tensor& keys, int64_t size, double scale, int64_t left_out) {
  const auto [sorted, order] = at::sort(keys, /*stable=*/std::optional<bool>(true), /*dim=*/0);
  Tensor result = at::zeros({size, gradient.size(1)}, gradient.options());
  const gpu::SumsByKey args = {.columns = gradient.size(1),
                               .input = data_of<float>(gradient),
                               .dropout = dropout.rows(gradient.device()),
                               .order = data_of<int64_t>(order),
                               .keys = data_of<int64_t>(sorted),
                               .left_out = left_out,
                               .scale = static_cast<float>(scale),
                               .result = mutable_data_of<float>(result),
                               .result_rows = size};
  const int64_t rows = gradient.size(0);
  with_gpu_kernels(gradient, [&](const gpu::Kernels& kernels, void* stream) { return kernels.sum_by_key(args, rows, stream); });
  return result;
}

Tensor drop(const Tensor& x, const Dropout& dropout) {
  if (dropout.rows().threshold == 0) return x;
  Tensor result = at::empty_like(x);
  with_scalar_of(x, [&](auto t) {
    using T = decltype(t);
    for_rows(row_kernels<T>().drop, DropRows<T>{x.size(1), data_of<T>(x), dropout.rows(), mutable_data_of<T>(result)}, x.size(0));
  });
  return result;
}

template <class X>
std::vector<int64_t> keys_of(const Tensor& list) {
  return {list.const_data_ptr<X>(), list.const_data_ptr<X>() + list.numel()};
}

class EmbedFunction : public torch::autograd::Function<EmbedFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& ids, double scale,
                        const std::optional<Tensor>& maybe_position_table, const std::optional<Tensor>& maybe_positions,
                        const Dropout& dropout, int64_t zero_id) {
    const Tensor position_table = maybe_position_table.value_or(Tensor()), positions = maybe_positions.value_or(Tensor());
    context->saved_data["ids"] = ids;
    context->saved_data["positions"] = positions;
    context->saved_data["scale"] = scale;
    context->saved_data["table_rows"] = table.size(0);
    context->saved_data["zero_id"] = zero_id;
    context->saved_data["position_rows"] = position_table.defined() && position_table.requires_grad() ? position_table.size(0) : 0;
    keep_dropout(*context, dropout);
    return forward_pass(table, ids, scale, position_table, positions, dropout, zero_id);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kEmbedding);
    auto& kept = context->saved_data;
    if (has_gpu_rows(gradients[0])) return backward_on_gpu(*context, gradients[0].contiguous());
    const Tensor gradient = drop(gradients[0].contiguous(), kept_dropout(*context)), ids = kept["ids"].toTensor();
    const Tensor table_gradient = sum_by_key(gradient, keys_of<int64_t>(ids), kept["table_rows"].toInt(), kept["scale"].toDouble());
    if (const int64_t zero_id = kept["zero_id"].toInt(); zero_id != kNoId) table_gradient[zero_id].zero_();
    const int64_t position_rows = kept["position_rows"].toInt();
    const Tensor position_gradient =
        position_rows > 0 ? sum_by_key(gradient, keys_of<int32_t>(kept["positions"].toTensor()), position_rows, 1) : Tensor();
    return {table_gradient, Tensor(), Tensor(), position_gradient, Tensor(), Tensor(), Tensor()};
  }

 private:
  static variable_list backward_on_gpu(AutogradContext& context, const Tensor& gradient) {
    auto& kept = context.saved_data;
    const Dropout dropout = kept_dropout(context);
    const Tensor table_gradient = sum_by_key_on_gpu(gradient, dropout, kept["ids"].toTensor(), kept["table_rows"].toInt(),
                                                    kept["scale"].toDouble(), kept["zero_id"].toInt());
    Tensor position_gradient;
    if (const int64_t position_rows = kept["position_rows"].toInt(); position_rows > 0) {
      const Tensor positions = kept["positions"].toTensor().to(at::kLong);
      position_gradient = sum_by_key_on_gpu(gradient, dropout, positions, position_rows, 1, kNoId);
    }
    return {table_gradient, Tensor(), Tensor(), position_gradient, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
             const Dropout& dropout, int64_t zero_id) {
  const TimedPart timed(ProfilePart::kEmbedding);
  if (!has_row_kernels(table)) return reference::embed(table, ids, scale, position_table, positions, dropout, zero_id);
  if (!at::GradMode::is_enabled()) return forward_pass(table, ids.contiguous(), scale, position_table, positions, dropout, zero_id);
  return EmbedFunction::apply(table, ids.contiguous(), scale, optional_of(position_table), optional_of(positions), dropout, zero_id);
}

void embed_into(const Tensor& table, const std::vector<int64_t>& ids, double scale, const Tensor& position_table,
                const std::vector<int32_t>& positions, int64_t zero_id, float* to) {
  const TimedPart timed(ProfilePart::kEmbedding);
  require_ids(ids.data(), std::ssize(ids), table.size(0));
  embed_rows(table, ids.data(), std::ssize(ids), scale, position_table, positions.data(), {}, zero_id, to);
}

}  // namespace lacuna

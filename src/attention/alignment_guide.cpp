#include "attention/alignment_guide.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "attention/dense_weights.h"
#include "attention/registry.h"
#include "base/device.h"

namespace lacuna {
namespace {

/// Omega, by the family that a type's weights come from.
struct Entropy {
  enum class Kind { kShannon, kTsallis, kSquare } kind = Kind::kShannon;
  double alpha = 1;         ///< Tsallis: the order
  bool is_learned = false;  ///< Tsallis: the order is the row's number
};

std::optional<Entropy> entropy_of(const AttentionType& type) {
  using Kind = Entropy::Kind;
  const std::string name = type.name();
  const auto option = [&](const char* key) { return type.description().find(key)->text(); };
  if (name == "softmax" || name == "topk") return Entropy{};
  if (name == "entmax15") return Entropy{Kind::kTsallis, 1.5};
  if (name == "sparsemax") return Entropy{Kind::kTsallis, 2};
  if (name == "rela" && option("activation") == "relu") return Entropy{Kind::kSquare};
  if (name != "entmax") return {};
  if (option("alpha") == "learned") return Entropy{Kind::kTsallis, 0, true};
  const double alpha = std::stod(option("alpha"));
  return alpha == 1 ? Entropy{} : Entropy{Kind::kTsallis, alpha};
}

/// Omega, summed over the rows p [R, K]; `numbers` [R, 1] are the rows' orders, if they are learned.
Tensor omega(const Entropy& entropy, const Tensor& p, const Tensor& numbers) {
  switch (entropy.kind) {
    case Entropy::Kind::kShannon:
      return at::xlogy(p, p).sum();
    case Entropy::Kind::kTsallis:
      if (entropy.is_learned) return ((p.pow(numbers) - p) / (numbers * (numbers - 1))).sum();
      return (p.pow(entropy.alpha) - p).sum() / (entropy.alpha * (entropy.alpha - 1));
    case Entropy::Kind::kSquare:
      return p.square().sum() / 2;
  }
  return {};
}

/// Returns the part of a call that is one head's. Rounded factors become float, so that the loss has digits.
AttentionCall head_of(const AttentionCall& call, int64_t head) {
  const auto of_head = [&](const Tensor& x) {
    const Tensor rows = x.narrow(1, head, 1);
    return rows.scalar_type() == at::kBFloat16 ? rows.to(at::kFloat) : rows;
  };
  AttentionCall part = call;
  part.packed = Tensor();
  part.q = of_head(call.q);
  part.k = of_head(call.k);
  part.v = part.k;
  for (Tensor& number : part.numbers) number = number.narrow(number.dim() - 1, head, 1);
  return part;
}

/// The position of each row of the keys in its sentence.
std::vector<int64_t> key_positions(const AttentionCall& call) {
  std::vector<int64_t> positions(static_cast<size_t>(call.k.size(0)), 0);
  for (size_t b = 0; b < call.keys->begin.size(); ++b)
    for (int32_t j = 0; j < call.keys->count[b]; ++j) positions[static_cast<size_t>(call.keys->begin[b]) + static_cast<size_t>(j)] = j;
  return positions;
}

/// The queries that are linked [R], and t, even over each one's keys, as the elements of [R, K] that are not zero.
struct Targets {
  std::vector<int64_t> queries, elements;
  std::vector<double> values;
};

Targets targets_of(const std::vector<std::pair<int32_t, int32_t>>& links, const std::vector<int64_t>& positions, int64_t width) {
  Targets targets;
  for (auto link = links.begin(); link != links.end();) {
    const int32_t query = link->second;
    const auto end = std::find_if(link, links.end(), [query](const auto& other) { return other.second != query; });
    const auto row = static_cast<int64_t>(targets.queries.size());
    targets.queries.push_back(query);
    const double share = 1 / static_cast<double>(end - link);
    for (; link != end; ++link) {
      targets.elements.push_back(row * width + positions.at(static_cast<size_t>(link->first)));
      targets.values.push_back(share);
    }
  }
  return targets;
}

const AttentionType& identity() {
  static const std::shared_ptr<const AttentionType> type = make_attention_type(
      ConfigNode::map({{"type", ConfigNode::scalar("rela")}, {"activation", ConfigNode::scalar("identity")}}), /*num_heads=*/1);
  return *type;
}

}  // namespace

AlignmentGuide::AlignmentGuide(AlignmentSource guided, double weight, std::span<const std::pair<int32_t, int32_t>> links)
    : guided_(guided), weight_(weight), links_(links.begin(), links.end()) {
  const auto by_query = [](const auto& a, const auto& b) { return std::pair(a.second, a.first) < std::pair(b.second, b.first); };
  std::sort(links_.begin(), links_.end(), by_query);
  links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
}

void AlignmentGuide::see(const AttentionCall& call, const ForwardContext& context) {
  if (links_.empty()) return;
  const std::optional<Entropy> entropy = entropy_of(*call.type);
  if (!entropy) throw ShapeError("guided alignment: " + reason_not_to_guide(*call.type));
  AttentionCall head = head_of(call, guided_.head);
  const int64_t width = dense_keys(head);
  const Targets targets = targets_of(links_, key_positions(head), width);
  const Tensor rows = tensor_of(targets.queries, head.q.device());
  const auto of_rows = [&](const Tensor& dense) { return dense.squeeze(1).index_select(0, rows).to(at::kDouble); };  // (Tq, 1, K) -> (R, K)
  Tensor p, numbers;
  {
    const at::NoGradGuard no_gradients;
    p = of_rows(dense_weights(head, context));
    if (entropy->is_learned) {
      const Tensor& number = head.numbers.front();  // (1), or (Tq, 1)
      numbers = (number.dim() == 1 ? number.expand({rows.size(0), 1}) : number.index_select(0, rows)).to(at::kDouble);
    }
  }
  const Tensor t = at::zeros({rows.size(0) * width}, p.options());
  t.index_put_({tensor_of(targets.elements, t.device())}, tensor_of(targets.values, t.device()));
  const Tensor target = t.view({rows.size(0), width});
  head.type = &identity();
  head.numbers.clear();
  const Tensor scores = of_rows(dense_weights(head, context));
  const Tensor constant = omega(*entropy, target, numbers) - omega(*entropy, p, numbers);
  loss_ = weight_ * (((p - target) * scores).sum() + constant);
}

std::string reason_not_to_guide(const AttentionType& type) {
  if (entropy_of(type)) return "";
  if (!type.is_row_map()) return "its weights are changed by a mask, as " + type.name() + " does, and there is no loss for them";
  return "there is no alignment loss for the weights of " + type.name() + (type.name() == "rela" ? " without activation: relu" : "");
}

}  // namespace lacuna

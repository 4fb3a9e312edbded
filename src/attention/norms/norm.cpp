#include "attention/norms/norm.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

const norms::NormEntry& named_norm(const ConfigNode& name) {
  std::vector<std::string> names;
  for (const norms::NormEntry* entry : norms::all_norms()) {
    if (name.text() == entry->name) return *entry;
    names.push_back(entry->name);
  }
  name.fail("known norms: " + join(names) + did_you_mean(name.text(), names));
}

}  // namespace

std::shared_ptr<AttentionNorm> make_attention_norm(const std::string& name, const ConfigNode& options, int64_t d_model, uint64_t key) {
  return named_norm(ConfigNode::scalar(name)).make(options, d_model, key);
}

void check_attention_norm(const ConfigNode& node) {
  if (node.is_scalar()) {
    named_norm(node);
    return;
  }
  const ConfigNode* type = node.is_map() ? node.find("type") : nullptr;
  if (type == nullptr || !type->is_scalar()) node.fail("expected the name of a norm, or a map with `type`");
  ConfigNode options = node;
  options.erase("type");
  named_norm(*type).make(options, 1, 0);
}

namespace norms {

Tensor xavier_uniform_vector(int64_t size, uint64_t key) {
  Tensor vector = at::empty({size}, at::kFloat);
  const double bound = std::sqrt(3.0 / static_cast<double>(size));
  RandomStream random(key);
  for (int64_t i = 0; i < size; ++i) vector.data_ptr<float>()[i] = static_cast<float>(bound * (2 * random.next_unit() - 1));
  return vector;
}

}  // namespace norms
}  // namespace lacuna

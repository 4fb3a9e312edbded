#include "checkpoint/average.h"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/quantize.h"
#include "config/config_node.h"
#include "config/read_options.h"

namespace lacuna {
namespace {

[[noreturn]] void fail(const std::string& first, const std::string& other, const std::string& difference) {
  throw CheckpointError("cannot average " + first + " and " + other + ": " + difference + ". Average checkpoints of one run");
}

void check_same_vocabulary(const Vocabulary& a, const Vocabulary& b, const std::string& side, const std::string& first,
                           const std::string& other) {
  const std::string difference = vocabulary_difference(a, b, side);
  if (!difference.empty()) fail(first, other, difference);
}

void check_same_model(const CheckpointContents& a, const CheckpointContents& b, const std::string& first, const std::string& other) {
  const std::vector<ConfigDifference> found = differences(write_options(a.options(first).model), write_options(b.options(other).model));
  if (!found.empty()) fail(first, other, "of their configurations, model." + found.front().text());
}

void check_same_weights(const NamedTensors& a, const NamedTensors& b, const std::string& first, const std::string& other) {
  for (const auto& [name, tensor] : a) {
    const auto found = b.find(name);
    if (found == b.end()) fail(first, other, "only the first has the weight " + name);
    if (found->second.sizes() != tensor.sizes()) fail(first, other, c10::str(name, " is ", tensor.sizes(), " and ", found->second.sizes()));
  }
  for (const auto& [name, tensor] : b)
    if (a.count(name) == 0) fail(first, other, "only the second has the weight " + name);
}

}  // namespace

CheckpointContents average_checkpoints(const std::vector<std::string>& paths) {
  if (paths.empty()) throw UsageError("no checkpoints to average");
  for (const std::string& path : paths) require_unrounded(path, read_checkpoint_info(path), "average");
  CheckpointContents mean = load_checkpoint(paths.front());
  NamedTensors sums;
  for (const auto& [name, tensor] : mean.translating_weights()) sums[name] = tensor.to(at::kDouble);
  for (size_t i = 1; i < paths.size(); ++i) {
    CheckpointContents next = load_checkpoint(paths[i]);
    check_same_vocabulary(*mean.vocabularies.src, *next.vocabularies.src, "source", paths.front(), paths[i]);
    check_same_vocabulary(*mean.vocabularies.tgt, *next.vocabularies.tgt, "target", paths.front(), paths[i]);
    check_same_model(mean, next, paths.front(), paths[i]);
    check_same_weights(sums, next.translating_weights(), paths.front(), paths[i]);
    for (auto& [name, sum] : sums) sum.add_(next.translating_weights().at(name));
    next.info.step = std::max(next.info.step, mean.info.step);
    mean = std::move(next);
  }
  const double count = static_cast<double>(paths.size());
  for (auto& [name, sum] : sums) mean.weights[name] = sum.div_(count).to(mean.weights.at(name).scalar_type());
  mean.ema_weights.reset();
  mean.info.uses_ema = false;
  mean.info.scores.clear();
  mean.info.averaged_from = paths;
  return mean;
}

}  // namespace lacuna

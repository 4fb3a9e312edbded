#include "checkpoint/not_finite.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/spelling.h"

namespace lacuna {

int64_t count_not_finite(const Tensor& values) {
  if (!values.is_floating_point() || values.numel() == 0) return 0;
  const auto [least, most] = at::aminmax(values.detach());  // NaN, if there is any
  if (std::isfinite(least.item<double>()) && std::isfinite(most.item<double>())) return 0;
  return values.numel() - at::isfinite(values).sum().item<int64_t>();
}

std::string NotFinite::text() const {
  std::string text =
      tensor + " has " + std::to_string(count) + " of " + counted(values, "value") + " that are not finite (NaN or infinity)";
  if (other_tensors > 0) text += ", and " + counted(other_tensors, "other tensor") + (other_tensors == 1 ? " has such" : " have such");
  return text;
}

bool note_not_finite(const std::string& name, const Tensor& tensor, std::optional<NotFinite>& found) {
  const int64_t count = count_not_finite(tensor);
  if (count > 0 && found) ++found->other_tensors;
  if (count > 0 && !found) found = {name, count, tensor.numel()};
  return count == 0;
}

std::optional<NotFinite> find_not_finite(const NamedTensors& tensors) {
  std::optional<NotFinite> found;
  for (const auto& [name, tensor] : tensors) note_not_finite(name, tensor, found);
  return found;
}

void require_none_found(const std::optional<NotFinite>& found, const std::string& file) {
  if (found)
    throw DamagedCheckpointError(file + ": the tensor " + found->text() +
                                 ": training had diverged when it was saved, or its weights were changed since. Use an earlier checkpoint");
}

void require_finite(const NamedTensors& tensors, const std::string& file) {
  require_none_found(find_not_finite(tensors), file);
}

}  // namespace lacuna

#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "model/linear.h"

namespace lacuna {

/// Queries and keys of an attention's mask (attention/types/calibrated.h): its scores are their products. Parameters: query.weight and
/// key.weight [D, D]. They learn in the mask pass alone; in any other the results are constants.
class MaskModel : public torch::nn::Module {
 public:
  MaskModel(int64_t d_model, const ParameterPath& path);
  /// (T, D) -> (T, D)
  Tensor queries(const Tensor& x, const ForwardContext& context);
  Tensor keys(const Tensor& x, const ForwardContext& context);

 private:
  std::shared_ptr<Linear> query_, key_;
};

/// True for the parameters of mask models, by their names.
bool is_mask_parameter(const std::string& name);

/// Moves a model to `device`, and warns where attention with a mask has no kernels there.
void move_to(torch::nn::Module& model, const std::string& device);

/// While it lives, only the parameters of the module's mask models require gradients.
class MasksAlone {
 public:
  explicit MasksAlone(const torch::nn::Module& module);
  ~MasksAlone();
  MasksAlone(const MasksAlone&) = delete;
  MasksAlone& operator=(const MasksAlone&) = delete;

 private:
  std::vector<Tensor> frozen_;
};

}  // namespace lacuna

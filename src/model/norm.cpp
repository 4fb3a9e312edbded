#include "model/norm.h"

namespace lacuna {

Norm::Norm(NormType type, int64_t d_model) : type_(type), gain_(register_parameter("gain", at::ones({d_model}, at::kFloat))) {
  if (type == NormType::kLayer) bias_ = register_parameter("bias", at::zeros({d_model}, at::kFloat));
}

}  // namespace lacuna

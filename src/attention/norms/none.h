#pragma once

#include "attention/norms/norm.h"

/// No norm: the context as it is.
namespace lacuna::norms::none {

struct Options {};

class Norm : public AttentionNorm {
 public:
  Norm(const Options& /*options*/, int64_t /*d_model*/, uint64_t /*key*/) {}
  Tensor forward(const Tensor& context) override { return context; }
  bool takes_rows() const override { return true; }
};

}  // namespace lacuna::norms::none

#pragma once

namespace lacuna {

/// What stands between the two matrices of a feed-forward layer.
enum class Activation {
  kRelu,    ///< max(x, 0)
  kGelu,    ///< x Phi(x), where Phi is the normal distribution function (Hendrycks & Gimpel 2016, arXiv:1606.08415)
  kSwish,   ///< x sigmoid(x) (Ramachandran et al. 2017, arXiv:1710.05941)
  kSwiglu,  ///< swish(x) y: the first matrix makes both (Shazeer 2020, arXiv:2002.05202); kernels/gated_activation.h
};

}  // namespace lacuna

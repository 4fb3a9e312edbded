#pragma once

#include <c10/core/Device.h>

#include "config/options.h"
#include "kernels/packed_product.h"

namespace lacuna {

/// What `translate.precision` names on this machine, for a model on `device`: a GPU multiplies weights as they are, in fp32.
inline WeightFormat weight_format_of(TranslatePrecision precision, at::Device device) {
  if (!device.is_cpu()) return WeightFormat::kFloat;
  switch (precision) {
    case TranslatePrecision::kAuto:
      return has_instructions_for(WeightFormat::kBf16) ? WeightFormat::kBf16 : WeightFormat::kFloat;
    case TranslatePrecision::kFp32:
      break;
    case TranslatePrecision::kBf16x3:
      return WeightFormat::kBf16x3;
    case TranslatePrecision::kBf16:
      return WeightFormat::kBf16;
    case TranslatePrecision::kInt8:
      return WeightFormat::kInt8;
  }
  return WeightFormat::kFloat;
}

}  // namespace lacuna

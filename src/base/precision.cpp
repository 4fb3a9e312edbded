#include "base/precision.h"

namespace lacuna {

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kAuto:
      break;
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16x3:
      return "bf16x3";
    case Precision::kBf16:
      return "bf16";
    case Precision::kInt8:
      return "int8";
  }
  return "auto";
}

}  // namespace lacuna

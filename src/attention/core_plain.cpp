#include "attention/core_masked.h"
#include "attention/machine_plain.h"

namespace lacuna::core {

Functions<double> functions_plain() {
  return {Core<PlainMachine<double>>::forward, Core<PlainMachine<double>>::backward, MaskedCore<PlainMachine<double>>::forward,
          MaskedCore<PlainMachine<double>>::backward};
}

}  // namespace lacuna::core

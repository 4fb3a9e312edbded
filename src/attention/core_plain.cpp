#include "attention/core_cpu.h"
#include "attention/machine_plain.h"

namespace lacuna::core {

Functions<double> functions_plain() {
  return {Core<PlainMachine<double>>::forward, Core<PlainMachine<double>>::backward};
}

}  // namespace lacuna::core

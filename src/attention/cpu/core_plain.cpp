#include "attention/cpu/core_together.h"
#include "attention/cpu/machine_plain.h"

namespace lacuna::core {

EntryPoints<double> core_plain() {
  using One = Core<PlainMachine<double>>;
  return {.forward = One::forward,
          .backward = One::backward,
          .memory_elements = One::memory_elements,
          .forward_together = CoreTogether<PlainMachine<double>>::forward};
}

}  // namespace lacuna::core

// Ends the program, before anything else runs, on a processor that lacks the instructions it is compiled for. This source is compiled for
// every x86-64 processor, and uses nothing that is not.

#include <unistd.h>

namespace {

constexpr char kMessage[] =
    "error: this processor lacks AVX2, FMA or BMI2, which lacuna needs (Intel's Core and Xeon have them since 2013, AMD's since 2015, many "
    "Celeron, Pentium and Atom have not; a virtual machine needs the processor model of its host)\n";

void require_processor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(1);
}

// Before the libraries begin too: LibTorch's first steps call templates that the linker takes from this program.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)() = require_processor;

}  // namespace

#include "cli/version.h"

#include <ATen/Config.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>
#include <torch/version.h>

#include "attention/core_run.h"
#include "kernels/bf16_product.h"

namespace lacuna {
namespace {

/// Where the LibTorch that this process uses lies.
std::string libtorch_path() {
  Dl_info info = {};
  return dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
}

}  // namespace

std::string version_text() {
  return "lacuna " LACUNA_VERSION " (" LACUNA_GIT_HASH ")";
}

std::string build_text() {
#ifdef LACUNA_CUDA
  const std::string devices = "CPU and CUDA";
#else
  const std::string devices = "CPU";
#endif
  return fmt::format(
      "{}\nbuild            {}, {} {}\nLibTorch         {} in {}\ndevices          {}\ninstruction set  {} (attention), {} "
      "(LibTorch)\nbf16 products    {}\n"
      "threads          {}\nSentencePiece    {}",
      version_text(), LACUNA_BUILD_TYPE, LACUNA_COMPILER, __VERSION__, TORCH_VERSION, libtorch_path(), devices, name_of(attention_target()),
      at::get_cpu_capability(), has_bf16_instructions() ? "yes" : "no", at::get_num_threads(), LACUNA_SENTENCEPIECE_VERSION);
}

}  // namespace lacuna

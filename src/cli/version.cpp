#include <ATen/Config.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>
#include <torch/version.h>

#include "attention/cpu/run.h"
#include "base/resources.h"
#include "cli/verb.h"
#include "kernels/matmul.h"
#include "kernels/packed_product.h"
#include "model/precision.h"

namespace lacuna {
namespace {

/// Where the LibTorch that this process uses lies.
std::string libtorch_path() {
  Dl_info info = {};
  return dladdr(reinterpret_cast<void*>(&at::get_num_threads), &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
}

/// The instruction set that each of translate.precision's products is done with, and which of them is `auto`.
std::string precisions_text() {
  std::string text;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kInt8})
    text += fmt::format("{} {}, ", name_of(precision), name_of(packed_kernels(precision).front().target));
  return text + fmt::format("auto = {}", name_of(translating_precision(Precision::kAuto, at::kCPU)));
}

}  // namespace

std::string version_text() {
  const std::string version = "lacuna " LACUNA_VERSION, commit = LACUNA_GIT_HASH;
  return commit.empty() ? version : fmt::format("{} ({})", version, commit);
}

std::string build_text() {
#ifdef LACUNA_CUDA
  const std::string devices = "CPU and CUDA";
#else
  const std::string devices = "CPU";
#endif
  return fmt::format(
      "{}\nbuild            {}, {} {}\nLibTorch         {} in {}\ndevices          {}\ninstruction set  {} (attention), {} "
      "(LibTorch)\nfp32 products    {}\nbf16 products    {}\ntranslating      {}\n"
      "threads          {}\nSentencePiece    {}",
      version_text(), LACUNA_BUILD_TYPE, LACUNA_COMPILER, __VERSION__, TORCH_VERSION, libtorch_path(), devices, name_of(attention_target()),
      at::get_cpu_capability(), name_of(matmul_backend()), cpu_has(CpuTarget::kAvx512Bf16) ? "yes" : "no", precisions_text(), num_cores(),
      LACUNA_SENTENCEPIECE_VERSION);
}

}  // namespace lacuna

#include "train/products.h"

#include "kernels/matmul.h"
#include "kernels/packed_product.h"

namespace lacuna {
namespace {

std::string in_words(const Products& products) {
  const std::string bf16 = products.bf16.empty() ? "" : products.bf16 + " for bf16, ";
  return products.fp32 + " for fp32, " + bf16 + products.instruction_set + " for the rest";
}

/// Returns the word by which runs note how bf16 factors are multiplied.
const char* bf16_products() {
  switch (bf16_targets().front()) {
    case CpuTarget::kAmx:
      return "tiles";
    case CpuTarget::kAvx512Bf16:
      return "vectors";
    default:
      return "widened";
  }
}

/// Chooses the backend that the note names. oneDNN's products, which older versions could use, become our own.
void use_backend(const std::string& noted) {
  for (const MatmulBackend backend : matmul_backends())
    if (name_of(backend) == noted || (backend == MatmulBackend::kBlocks && noted == "onednn")) set_matmul_backend(backend);
}

}  // namespace

Products products_in_use() {
  return {name_of(matmul_backend()), name_of(packed_kernels(Precision::kBf16).front().target), bf16_products()};
}

std::string resume_with(const Products& of_run) {
  if (of_run.fp32.empty()) return "";
  use_backend(of_run.fp32);
  Products here = products_in_use();
  if (of_run.bf16.empty()) here.bf16.clear();
  if (here == of_run) return "";
  return "until now matrices were multiplied by " + in_words(of_run) + ", from here on by " + in_words(here) +
         ": training resumes, but not bit for bit as it did there";
}

}  // namespace lacuna

#include "train/products.h"

#include "kernels/bf16_product.h"
#include "kernels/linear.h"
#include "kernels/packed_product.h"

namespace lacuna {
namespace {

std::string in_words(const Products& products) {
  const std::string bf16 = products.bf16.empty() ? "" : products.bf16 + " for bf16, ";
  return products.fp32 + " for fp32, " + bf16 + products.instruction_set + " for the rest";
}

}  // namespace

Products products_in_use() {
  return {name_of(matmul_backend()), packed_kernels(WeightFormat::kBf16).front().target, name_of(bf16_backends().front())};
}

std::string resume_with(const Products& of_run) {
  if (of_run.fp32.empty()) return "";
  for (const MatmulBackend backend : matmul_backends())
    if (name_of(backend) == of_run.fp32) set_matmul_backend(backend);
  Products here = products_in_use();
  if (of_run.bf16.empty()) here.bf16.clear();
  if (here == of_run) return "";
  return "until now matrices were multiplied by " + in_words(of_run) + ", from here on by " + in_words(here) +
         ": the run goes on, and rounds otherwise than it would have there";
}

}  // namespace lacuna

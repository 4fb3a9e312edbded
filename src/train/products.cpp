#include "train/products.h"

#include "kernels/linear.h"
#include "kernels/packed_product.h"

namespace lacuna {
namespace {

std::string in_words(const Products& products) {
  return products.fp32 + " for fp32, " + products.instruction_set + " for the rest";
}

}  // namespace

Products products_in_use() {
  return {name_of(matmul_backend()), packed_kernels(WeightFormat::kBf16).front().target};
}

std::string go_on_with(const Products& of_run) {
  if (of_run.fp32.empty()) return "";
  for (const MatmulBackend backend : matmul_backends())
    if (name_of(backend) == of_run.fp32) set_matmul_backend(backend);
  const Products here = products_in_use();
  if (here == of_run) return "";
  return "until now matrices were multiplied by " + in_words(of_run) + ", from here on by " + in_words(here) +
         ": the run goes on, and rounds otherwise than it would have there";
}

}  // namespace lacuna

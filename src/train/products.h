#pragma once

#include <string>

namespace lacuna {

/// What multiplies in a training run on the CPU. Others round otherwise: a run that must go on bit for bit goes on with these.
struct Products {
  std::string fp32;             ///< as `lacuna info` names it; empty = not known (of a GPU, or a run from before this was noted)
  std::string instruction_set;  ///< of attention and of the other kernels
  std::string bf16;             ///< what multiplies rounded factors; empty = not known (a run from before this was noted)

  bool operator==(const Products&) const = default;
};

/// Those in use.
Products products_in_use();

/// Takes up a run's products of fp32, if this machine has them. Returns a sentence for the log if anything that multiplies is another than
/// the run's all the same, else nothing.
std::string resume_with(const Products& of_run);

}  // namespace lacuna

#pragma once

#include <string>

namespace lacuna {

/// The loops that multiply matrices on the CPU. Others round differently: a run that resumes bit for bit keeps its own.
struct Products {
  std::string fp32;             ///< `default` or `blocks`, as `lacuna info` prints it; empty = unknown (a run on a GPU, or an old one)
  std::string instruction_set;  ///< of attention and of the other kernels
  std::string bf16;             ///< `tiles`, `vectors` or `widened`; empty = unknown, or nothing is rounded

  bool operator==(const Products&) const = default;
};

/// Returns the products that this process uses.
Products products_in_use();

/// Makes this process use the run's fp32 products, if this machine has them. Returns a sentence for the log if any of
/// its products still differ from the run's, else nothing.
std::string resume_with(const Products& of_run);

}  // namespace lacuna

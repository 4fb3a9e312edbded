#pragma once

#include <string>

#include "ablation/summary.h"

namespace lacuna {

/// A picture of the table, an SVG that needs nothing else: a row a variant, its BLEU (each seed, their mean, the bootstrap's 95 % interval)
/// and beside it the share of zero weights at each site. Legible on light and dark; shapes say what colours say.
std::string svg_plot(const AblationReport& report);

}  // namespace lacuna

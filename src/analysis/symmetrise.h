#pragma once

#include "analysis/pharaoh.h"

namespace lacuna {

/// How the alignments of two directions become one.
enum class Symmetrisation { kIntersection, kUnion, kGrowDiagFinalAnd };

/// Links of both directions, each (source, target) -> sorted links. Grow-diag-final-and (Koehn et al. 2003): from the intersection, links
/// of the union that touch one already there, also diagonally, are added as long as one of their words has none yet; then those of either
/// direction whose words both have none.
Links symmetrise(const Links& forward, const Links& backward, Symmetrisation kind);

/// Source and target changed places; sorted.
Links turned(const Links& links);

}  // namespace lacuna

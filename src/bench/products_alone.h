#pragma once

#include "base/profile.h"

namespace lacuna {

/// Seconds that all products of a profile take when each is made alone, one after the other, without biases: the median of some times,
/// after one that does not count. What training does to a product block by block while it is in the cache (in bf16 activation and loss) is
/// not done here, and counts as the product's time there.
double seconds_of_products_alone(const Profile& profile);

}  // namespace lacuna

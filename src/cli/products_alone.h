#pragma once

#include "base/profile.h"

namespace lacuna {

/// Seconds that all products of a profile take when each is made alone, one after the other, by the functions that training calls: the
/// median of some times, after one that does not count.
double seconds_of_products_alone(const Profile& profile);

}  // namespace lacuna

#pragma once

#include <iosfwd>

#include "config/configuration.h"

namespace lacuna {

/// `lacuna check`: a dry run of a configuration. Reads the data, trains a few batches, translates a sentence, and prints to `out` what a
/// run would take, with its number of warnings in the last line. Writes nothing but data.cache, where it is set. Throws what would keep
/// training from starting.
void check_configuration(const Configuration& given, std::ostream& out);

}  // namespace lacuna

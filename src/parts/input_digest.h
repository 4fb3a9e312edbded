#pragma once

#include <filesystem>

#include "base/content_hash.h"

namespace lacuna {

/// The most bytes of a file that sampled_digest_of() reads.
inline constexpr uint64_t kMostSampledBytes = 4 << 20;

/// Returns a file's size, and the hash of the whole file or, if it is large, of kMostSampledBytes in pieces that are spread evenly over it,
/// its beginning and its end among them: what every worker can afford to compare. Throws DataError if it cannot be read.
FileDigest sampled_digest_of(const std::filesystem::path& file);

}  // namespace lacuna

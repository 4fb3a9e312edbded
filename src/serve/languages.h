#pragma once

#include <string>

namespace lacuna::serve {

/// Returns the English name of a language by its code ("German" for de and de_AT), or the code itself if it is not among those known.
std::string language_name(const std::string& code);

}  // namespace lacuna::serve

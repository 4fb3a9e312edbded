#pragma once

#include <map>
#include <string>

namespace lacuna::serve {

/// Returns the page, its style and its script. In the page, {{NAME}} stands for what is filled in.
const std::map<std::string, std::string>& page_parts();

}  // namespace lacuna::serve

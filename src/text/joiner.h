#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Restores the words of a text that was split into pieces, where every piece of a word but the last ends with a joiner
/// (subword-nmt's @@): "viel@@ leicht geht es" becomes "vielleicht geht es". An empty joiner changes nothing.
std::string joined(std::string_view text, std::string_view joiner);

/// Returns the index of the restored word of each space-separated piece of `text`, followed by the number of words.
std::vector<int32_t> joined_words(std::string_view text, std::string_view joiner);

}  // namespace lacuna

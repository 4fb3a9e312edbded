#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Text whose words were cut into pieces before, where a piece that the next one belongs to ends with a joiner (subword-nmt's @@), with
/// whole words: "viel@@ leicht geht es" gives "vielleicht geht es". An empty joiner changes nothing.
std::string joined(std::string_view text, std::string_view joiner);

/// For each space-separated piece of `text` the index of its word there, and behind them the number of words.
std::vector<int32_t> joined_words(std::string_view text, std::string_view joiner);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267): neighbouring symbols (characters at first) are merged into pieces, the pair with
/// the best score first and the leftmost of equals, but each possible merge is left out with probability `dropout` at each round; it ends
/// with a round that leaves out all. `score_of` gives a piece's score (higher merges first), nothing if it may not be made.
std::vector<std::string> bpe_with_dropout(std::vector<std::string> symbols,
                                          const std::function<std::optional<float>(const std::string&)>& score_of, double dropout,
                                          uint64_t random_key);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267): characters of `text` are merged into pieces, the pair with the best score first,
/// but each possible merge is left out with probability `dropout` at each round. `score_of` gives a piece's score (higher merges first),
/// nothing if it is not in the vocabulary.
std::vector<std::string> bpe_with_dropout(const std::string& text, const std::function<std::optional<float>(const std::string&)>& score_of,
                                          double dropout, uint64_t random_key);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// Segments a line by BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267): adjacent symbols (characters at first) are
/// merged into pieces, the pair with the highest score first and the leftmost among equals, but in each round every
/// possible merge is dropped with probability `dropout`; a round that drops all merges is the last. `score_of` returns
/// the score of a piece, or nothing if it is not in the vocabulary.
std::vector<std::string> bpe_with_dropout(std::vector<std::string> symbols,
                                          const std::function<std::optional<float>(const std::string&)>& score_of, double dropout,
                                          uint64_t random_key);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lacuna {

using WordLink = std::pair<int32_t, int32_t>;  ///< source, target
using WordLinks = std::vector<WordLink>;

/// The links of a line as it counts words. Both lists are sorted, without repeats; `possible` holds the sure ones too.
struct LinksOfLine {
  WordLinks sure, possible;
};

/// Parses a line of word alignments (the Pharaoh format): "0-0 1-2 3?3" links source words with target words; `-` is a sure link, `?` or
/// `p` a possible one. Throws LineError, which begins with `place`, for text that is no link.
LinksOfLine parse_links(std::string_view line, const std::string& place);

/// "link 3-1 is out of range; the sentences have 3 and 2 words, counted from 0" for the first link to a word that is not there, of those
/// that count words from `base`; empty if there is none.
std::string link_out_of_range(const WordLinks& links, int base, int32_t src_words, int32_t tgt_words);

/// Returns the links between the tokens of linked words: each token of the one with each of the other. `src_words` and `tgt_words` are the
/// word of each token (Vocabulary::words_of). WordLinks to words without a token are passed over.
WordLinks links_of_tokens(std::span<const WordLink> links, std::span<const int32_t> src_words, std::span<const int32_t> tgt_words);

}  // namespace lacuna

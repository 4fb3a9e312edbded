#include "data/word_links.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/line_reader.h"

namespace lacuna {
namespace {

struct ParsedLink {
  WordLink link;
  bool is_sure = true;
};

/// Parses a link. Null if the text is none, or names words that no line of text could have.
std::optional<ParsedLink> parse_link(std::string_view word) {
  constexpr int32_t kMostWords = 1 << 20;  // bytes of the longest line
  ParsedLink parsed;
  const char *const begin = word.data(), *const end = begin + word.size();
  const auto [after_src, src_error] = std::from_chars(begin, end, parsed.link.first);
  if (src_error != std::errc() || after_src == end || *begin == '-') return {};
  if (*after_src != '-' && *after_src != '?' && *after_src != 'p') return {};
  parsed.is_sure = *after_src == '-';
  const auto [after_tgt, tgt_error] = std::from_chars(after_src + 1, end, parsed.link.second);
  if (tgt_error != std::errc() || after_tgt != end || after_src[1] == '-') return {};
  if (std::max(parsed.link.first, parsed.link.second) > kMostWords) return {};
  return parsed;
}

/// The beginning of a text for an error message, in quotes. All but plain ASCII is escaped: a terminal might obey it.
std::string quoted_beginning(std::string_view word) {
  using nlohmann::json;
  constexpr size_t kMostBytes = 40;
  const std::string quoted = json(word.substr(0, kMostBytes)).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::ignore);
  return quoted + (word.size() > kMostBytes ? "..." : "");
}

void sort_unique(WordLinks& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

/// Returns the tokens of each word, by increasing token.
std::vector<std::vector<int32_t>> tokens_of_words(std::span<const int32_t> words) {
  std::vector<std::vector<int32_t>> tokens;
  for (size_t token = 0; token < words.size(); ++token) {
    const auto word = static_cast<size_t>(words[token]);
    if (word >= tokens.size()) tokens.resize(word + 1);
    tokens[word].push_back(static_cast<int32_t>(token));
  }
  return tokens;
}

}  // namespace

LinksOfLine parse_links(std::string_view line, const std::string& place) {
  LinksOfLine links;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    if (end > begin) {
      const std::string_view word = line.substr(begin, end - begin);
      const auto parsed = parse_link(word);
      if (!parsed)
        throw LineError(
            "with links that are none",
            place + ": " + quoted_beginning(word) + " is not a link; expected source-target, such as 0-0 (sure), 1?2 or 1p2 (possible)");
      links.possible.push_back(parsed->link);
      if (parsed->is_sure) links.sure.push_back(parsed->link);
    }
    begin = end + 1;
  }
  sort_unique(links.sure);
  sort_unique(links.possible);
  return links;
}

std::string link_out_of_range(const WordLinks& links, int base, int32_t src_words, int32_t tgt_words) {
  const auto fits = [=](const WordLink& link) {
    return link.first >= base && link.first - base < src_words && link.second >= base && link.second - base < tgt_words;
  };
  const auto bad = std::find_if_not(links.begin(), links.end(), fits);
  if (bad == links.end()) return "";
  return "link " + std::to_string(bad->first) + "-" + std::to_string(bad->second) + " is out of range; the sentences have " +
         std::to_string(src_words) + " and " + std::to_string(tgt_words) + " words, counted from " + std::to_string(base);
}

WordLinks links_of_tokens(std::span<const WordLink> links, std::span<const int32_t> src_words, std::span<const int32_t> tgt_words) {
  const std::vector<std::vector<int32_t>> src_tokens = tokens_of_words(src_words), tgt_tokens = tokens_of_words(tgt_words);
  WordLinks found;
  for (const WordLink& link : links) {
    const auto src = static_cast<size_t>(link.first), tgt = static_cast<size_t>(link.second);
    if (src >= src_tokens.size() || tgt >= tgt_tokens.size()) continue;
    for (const int32_t s : src_tokens[src])
      for (const int32_t t : tgt_tokens[tgt]) found.emplace_back(s, t);
  }
  return found;
}

}  // namespace lacuna

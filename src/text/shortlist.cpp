#include "text/shortlist.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

constexpr char kMagic[] = "lacuna-shortlist";
constexpr char kVersion[] = "1";
constexpr int64_t kMostIds = int64_t{1} << 26;  // 256 MiB

std::string hash_of_vocabularies(const Vocabularies& vocabularies) {
  const std::string& src = vocabularies.src->serialized();
  const std::string both = std::to_string(src.size()) + " " + src + vocabularies.tgt->serialized();
  return hash_of(both);
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// Reads one file; every claim it makes is checked before it costs memory.
class ShortlistReader {
 public:
  ShortlistReader(const std::string& path, const Vocabularies& vocabularies)
      : reader_((require_readable_file(path, "a shortlist"), path)), vocabularies_(vocabularies) {}

  Shortlist read() {
    read_header();
    std::vector<TokenId> frequent = next_ids(most_frequent_);
    std::vector<std::vector<TokenId>> best;
    const int64_t src_size = vocabularies_.src->size();
    best.reserve(static_cast<size_t>(src_size));
    for (int64_t id = 0; id < src_size; ++id) best.push_back(next_ids(most_best_));
    if (std::string line; reader_.next(line)) fail("is one line too many; expected " + std::to_string(src_size + 2));
    return {vocabularies_, std::move(best), std::move(frequent)};
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DataError(reader_.place() + ": " + what); }

  void next_line(std::string& line) {
    if (!reader_.next(line))
      fail("is the last line; a shortlist for this model has " + std::to_string(vocabularies_.src->size() + 2) + ". Is it cut short?");
  }

  void read_header() {
    std::string line;
    if (!reader_.next(line)) line.clear();
    const std::vector<std::string> words = words_of(line.substr(0, 200));
    if (words.size() != 5 || words[0] != kMagic) fail("is no shortlist; expected a file of lacuna shortlist");
    if (words[1] != kVersion) fail("is a shortlist of format " + words[1] + "; this program reads " + kVersion);
    if (const std::string expected = hash_of_vocabularies(vocabularies_); words[2] != expected)
      fail("the shortlist was made for other vocabularies (" + words[2] + ") than the model's (" + expected +
           "): make one with lacuna shortlist -m MODEL");
    most_best_ = number(words[3], Shortlist::kMostBest, "most candidates of a token");
    most_frequent_ = number(words[4], Shortlist::kMostFrequent, "most frequent tokens");
  }

  int64_t number(std::string_view word, int64_t largest, const std::string& what) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > largest)
      fail(fmt::format("\"{}\" is no {}; expected 0 to {}", word.substr(0, 40), what, largest));
    return value;
  }

  std::vector<TokenId> next_ids(int64_t most) {
    std::string line;
    next_line(line);
    std::vector<TokenId> ids;
    for (size_t begin = 0; begin < line.size();) {
      const size_t end = std::min(line.find(' ', begin), line.size());
      if (static_cast<int64_t>(ids.size()) == most) fail("has more than the " + std::to_string(most) + " tokens that line 1 promises");
      const auto word = std::string_view(line).substr(begin, end - begin);
      if (++num_ids_ > kMostIds) fail("has more than " + std::to_string(kMostIds) + " tokens up to here");
      ids.push_back(static_cast<TokenId>(number(word, vocabularies_.tgt->size() - 1, "target token")));
      begin = end + 1;
    }
    return ids;
  }

  LineReader reader_;
  const Vocabularies& vocabularies_;
  int64_t most_best_ = 0, most_frequent_ = 0, num_ids_ = 0;
};

void add_line(std::string& text, const std::vector<TokenId>& ids) {
  const char* separator = "";
  for (const TokenId id : ids) {
    text.append(separator).append(std::to_string(id));
    separator = " ";
  }
  text += '\n';
}

}  // namespace

Shortlist::Shortlist(const Vocabularies& vocabularies, std::vector<std::vector<TokenId>> best, std::vector<TokenId> frequent)
    : vocabularies_(hash_of_vocabularies(vocabularies)),
      is_shared_(vocabularies.shared()),
      best_(std::move(best)),
      frequent_(std::move(frequent)) {}

std::vector<TokenId> Shortlist::candidates(std::span<const TokenId> src, std::span<const TokenId> prefix) const {
  std::vector<TokenId> all = {kUnk, kBos, kEos};
  all.insert(all.end(), frequent_.begin(), frequent_.end());
  all.insert(all.end(), prefix.begin(), prefix.end());
  if (is_shared_) all.insert(all.end(), src.begin(), src.end());
  for (const TokenId id : src) {
    const auto& best = best_[static_cast<size_t>(id)];
    all.insert(all.end(), best.begin(), best.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string Shortlist::to_text() const {
  size_t most = 0;
  for (const auto& ids : best_) most = std::max(most, ids.size());
  std::string text = fmt::format("{} {} {} {} {}\n", kMagic, kVersion, vocabularies_, most, frequent_.size());
  add_line(text, frequent_);
  for (const auto& ids : best_) add_line(text, ids);
  return text;
}

std::shared_ptr<const Shortlist> read_shortlist(const std::string& path, const Vocabularies& vocabularies) {
  return std::make_shared<const Shortlist>(ShortlistReader(path, vocabularies).read());
}

}  // namespace lacuna

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

/// Returns the start of a token in quotes, for a message: a file that is no vocabulary may contain anything.
std::string start_in_quotes(const std::string& token) {
  constexpr size_t kMostBytes = 40;
  const auto is_inside_character = [&](size_t at) { return (static_cast<unsigned char>(token[at]) & 0xC0U) == 0x80U; };
  size_t end = std::min(token.size(), kMostBytes);
  while (end > 0 && end < token.size() && is_inside_character(end)) --end;
  std::string text = token.substr(0, end);
  const auto is_control = [](unsigned char byte) { return (byte < 0x20 && byte != '\t') || byte == 0x7F; };  // terminals obey them
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return '"' + text + (end < token.size() ? "...\"" : "\"");
}

/// The vocabulary of text that is already tokenized: tokens are separated by spaces.
class TokenList : public Vocabulary {
 public:
  TokenList(std::string bytes, const std::string& name) : bytes_(std::move(bytes)) {
    for (const char* special : {"<unk>", "<s>", "</s>"}) add(special);
    std::istringstream lines(bytes_);
    std::string token;
    for (int64_t line = 1; std::getline(lines, token); ++line) {
      if (!token.empty() && token.back() == '\r') token.pop_back();
      const auto refuse = [&](const char* what) { throw DataError(fmt::format("{}:{}: {} {}", name, line, start_in_quotes(token), what)); };
      if (const auto bad = first_invalid_utf8(token)) throw DataError(fmt::format("{}:{}: byte {} is not UTF-8", name, line, *bad + 1));
      if (token.empty() || token.find_first_of(" \t") != std::string::npos)
        refuse("is not a token; expected one token a line, without spaces");
      if (ids_.contains(token) && ids_[token] > kEos) refuse("is there twice; keep one of them");
      add(token);
    }
    if (tokens_.size() <= 3) throw DataError(name + ": holds no token; expected one token a line");
  }

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  bool is_sentencepiece() const override { return false; }
  std::string normalization() const override { return "identity"; }
  const std::string& piece(TokenId id) const override { return tokens_.at(static_cast<size_t>(id)); }
  const std::string& serialized() const override { return bytes_; }

  std::vector<TokenId> encode(std::string_view line) const override {
    std::vector<TokenId> ids;
    for_each_token(line, [&](std::string_view token) {
      const TokenId id = id_of(token);
      ids.push_back(id > kEos ? id : kUnk);  // "</s>" in a text ends nothing
    });
    return ids;
  }
  std::vector<TokenId> sample(std::string_view line, double, int64_t, uint64_t) const override { return encode(line); }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (id == kBos || id == kEos) continue;
      if (!text.empty()) text += ' ';
      text += piece(id);
    }
    return text;
  }

  TokenId id_of(std::string_view piece) const override {
    const auto found = ids_.find(std::string(piece));
    return found == ids_.end() ? kUnk : found->second;
  }

  std::vector<int32_t> words_of(std::string_view, std::span<const TokenId> ids) const override {
    std::vector<int32_t> words;
    for (size_t i = 0; i < ids.size(); ++i) words.push_back(static_cast<int32_t>(i));
    return words;
  }

 private:
  void add(const std::string& token) {
    if (ids_.emplace(token, static_cast<TokenId>(tokens_.size())).second) tokens_.push_back(token);
  }
  template <class F>
  static void for_each_token(std::string_view line, F f) {
    for (size_t begin = 0; begin < line.size();) {
      const size_t end = std::min(line.find(' ', begin), line.size());
      if (end > begin) f(line.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  std::string bytes_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace

VocabularyPtr token_list_from_bytes(std::string bytes, const std::string& name_for_errors) {
  return std::make_shared<TokenList>(std::move(bytes), name_for_errors);
}

VocabularyPtr load_token_list(const std::string& path) {
  require_readable_file(path, "a vocabulary, one token a line");
  std::string bytes = read_file(path);
  if (bytes.starts_with("\xEF\xBB\xBF"))
    throw DataError(path + ":1: begins with a byte order mark, which would be a part of the first token; save the file without it");
  return token_list_from_bytes(std::move(bytes), path);
}

}  // namespace lacuna

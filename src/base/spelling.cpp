#include "base/spelling.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

namespace lacuna {
namespace {

std::string folded(std::string_view word) {
  std::string plain;
  for (const char c : word) plain += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

/// The number of edits (insert, delete, replace, swap neighbors) that turn a into b.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before = previous;
    previous = current;
  }
  return previous.back();
}

}  // namespace

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string join_first(const std::vector<std::string>& words, size_t count) {
  if (words.size() <= count) return join(words);
  const std::vector<std::string> first(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  return join(first) + " and " + std::to_string(words.size() - count) + " more";
}

std::string counted(int64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kFewLetters = 3, kSomeLetters = 5;
  if (word.size() > 64) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(folded(word), folded(candidate));
    const bool has_common_letter = distance < std::max(word.size(), candidate.size());
    if (distance < best_distance && has_common_letter) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (!best.empty() || word.size() < kFewLetters) return best;
  const auto longer = std::find_if(known.begin(), known.end(), [&](const std::string& name) { return name.starts_with(word); });
  if (longer != known.end()) return *longer;
  const auto begins_alike = [&](const std::string& name) {
    const std::string plain = folded(name);  // of which the part before the first _ counts
    return word.size() >= kSomeLetters && edit_distance(folded(word), plain.substr(0, plain.find('_'))) <= 1;
  };
  const auto alike = std::find_if(known.begin(), known.end(), begins_alike);
  return alike == known.end() ? "" : *alike;
}

std::string language_of(const std::string& code) {
  return folded(code.substr(0, code.find_first_of("-_@.")));
}

std::string language_code_error(const std::string& code) {
  static const std::map<std::string, std::string> kMeant = {{"cn", "zh"}, {"jp", "ja"}};
  const std::string language = language_of(code);
  if (const auto meant = kMeant.find(language); meant != kMeant.end()) return "; expected a language's code, \"" + meant->second + "\"";
  const bool has_length = !language.empty() && language.size() <= 3;
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  if (code.empty() || (has_length && std::all_of(language.begin(), language.end(), is_letter))) return "";
  return "; expected a language's code of two or three letters, such as de, zh or zho_Hans";
}

std::string joiner_error(const std::string& joiner) {
  const bool has_blank = joiner.find_first_of(" \t\r\n") != std::string::npos;
  return has_blank ? "; expected what pieces end with, without the space behind it: \"@@\"" : "";
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : ". Did you mean \"" + nearest + "\"?";
}

}  // namespace lacuna

#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "document/stand_ins.h"

namespace lacuna::document {

/// Terms of source texts and what each is to be in the translation. A term is found where it stands as whole words; one in small letters in
/// any case, one with a capital letter only as it is written. Of terms that begin at one place the longest counts.
class Terms {
 public:
  static constexpr size_t kMost = 100'000;   ///< terms
  static constexpr size_t kLongest = 1'000;  ///< bytes of one, on either side

  /// Adds a term. Throws LineError, which begins with `place`, for one that is empty, too long, holds a control character, or is there
  /// already with another translation, and where there are too many.
  void add(const std::string& source, const std::string& target, const std::string& place);
  bool is_empty() const { return terms_.empty(); }

  /// Returns the parts with those that are not kept cut at terms, each of which is a kept part with its translation.
  std::vector<TextPart> cut(std::vector<TextPart> parts) const;

 private:
  struct Term {
    std::string source, target, place;
  };

  const Term* find(std::string_view text, std::string_view folded, size_t at, size_t& end) const;

  std::unordered_map<std::string, Term> terms_;  ///< by their sources
  std::set<size_t, std::greater<>> lengths_;     ///< of the sources, in bytes
};

/// Reads a file of terms, a term a line: source, tab, target; plain, gzip or zstd. Empty lines and those that begin with # are passed over.
/// Throws DataError with file and line for one that is no term.
Terms read_terms(const std::string& file);

}  // namespace lacuna::document

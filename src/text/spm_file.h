#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace lacuna {

/// The rules by which a SentencePiece model rewrites text before it is cut into pieces: the longest rule that fits applies, from left to
/// right. In a model's file: four bytes, the length of a double-array trie (Aoe 1989) of the texts to replace; the trie, whose values are
/// places in what follows; the replacements, each ended by a NUL.
class CharacterRules {
 public:
  CharacterRules() = default;
  /// Throws DataError, naming `name`, unless every search in the trie stays within it and ends, and each replacement is short text: the
  /// library, which is to use these bytes, checks none of that.
  CharacterRules(std::string_view bytes, const std::string& name);

  struct Match {
    size_t length = 0;  ///< bytes of the text; 0 = no rule fits
    std::string_view replacement = {};
  };
  /// Finds the longest rule for the beginning of a text.
  Match longest(std::string_view text) const;

 private:
  void check_units(const std::string& name) const;
  void check_depth(const std::string& name) const;
  uint32_t children_of(uint32_t unit) const;
  std::string_view replacement_of(uint32_t unit) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

/// A line without most characters of its runs of unknown ones.
struct ShortenedLine {
  std::string text;
  std::vector<std::pair<size_t, size_t>> cuts;  ///< places in `text`, and how many bytes were left out before each

  /// Returns the place in the whole line of a place in `text`.
  size_t place_in_line(size_t place) const;
};

/// What a SentencePiece model's file says, as far as the library trusts it.
class SpmFile {
 public:
  /// Throws DataError for a file that is no model, and for what the library would crash on or hang: see CharacterRules; pieces that are
  /// empty, no text, with a NUL, at which the library ends them, or longer than any word; scores that are no numbers.
  SpmFile(std::string_view bytes, const std::string& name);

  /// Leaves characters out of runs of such that no piece has, where that changes no token: a run is one unknown token, however long, but
  /// the library copies it for each character. Short lines, and what is not UTF-8, stay as they are.
  ShortenedLine shortened(std::string_view line) const;

 private:
  /// What is rewritten, and looked up, as a whole.
  struct Unit {
    size_t begin = 0, length = 0;
    bool is_known = false, is_silent = false;  // silent: replaced by nothing
  };
  void read_piece(std::string_view message, const std::string& name);
  void read_rules(std::string_view message, const std::string& name, bool is_used);
  Unit unit_at(std::string_view line, size_t begin) const;
  std::vector<Unit> units_of(std::string_view line) const;
  bool has_known_character(std::string_view text) const;

  CharacterRules rules_;
  std::vector<bool> alphabet_;        // by code point: characters of pieces
  std::vector<std::string> symbols_;  // never rewritten
  bool has_pieces_ = false, spells_bytes_ = false;
};

/// Loads a model into the library. Throws DataError, naming `name`, for what the library refuses, and for whatever it throws.
void load_spm(sentencepiece::SentencePieceProcessor& processor, const std::string& model, const std::string& name);

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "search/search.h"
#include "text/vocabulary.h"

namespace lacuna {

/// One line to translate. `id` names its random numbers (its place in the input).
struct TranslationInput {
  std::string text;
  std::string prefix;  ///< the translation must begin with this text
  int64_t id = 0;
};

/// One translation of a line.
struct Translation {
  std::string text;
  double score = 0;                                    ///< what translations are ranked by
  double log_prob = 0;                                 ///< in nats, of all tokens with eos
  std::vector<TokenId> tokens;                         ///< without eos
  std::vector<float> token_log_probs;                  ///< with that of eos
  std::vector<std::pair<int32_t, int32_t>> alignment;  ///< links (source, target), from 0: of words or of pieces
  bool is_truncated = false;                           ///< it met the length limit, or no other token was allowed
};

/// A line's translations, best first. An empty line has one empty translation.
struct TranslatedLine {
  std::vector<Translation> translations;
  int64_t src_pieces = 0;           ///< of the line, as far as it is translated
  bool is_cropped = false;          ///< the line is longer than the model can read, and was cut
  bool has_unknown_prefix = false;  ///< the vocabulary lacks a part of the prefix, for which the unknown token stands
  bool is_prefix_cropped = false;   ///< the prefix is longer than a translation may be, and was cut
};

enum class AlignmentLevel { kNone, kWord, kPiece };

struct TranslatorSettings {
  TranslateOptions options;
  AlignmentLevel alignment = AlignmentLevel::kNone;
  int alignment_layer = -1;                         ///< decoder layer whose cross attention aligns
  uint64_t seed = 1;                                ///< of sampling
  std::shared_ptr<const Shortlist> shortlist = {};  ///< of the tokens that may translate a line; null = all
};

/// A line of more is no sentence: a megabyte of it would take gigabytes of memory, and hours. `lacuna score` goes by it too, on both sides.
inline constexpr int64_t kMostSourceTokens = 16384;

/// Lines of text to translations: tokenises, batches, searches, detokenises.
///
/// Within what it is given at once it takes long lines first, and gives results in the order of the input. Each thread works on a batch of
/// its own, where the model allows that and there is enough for several; lines leave the batch when they are done, and new ones enter it.
/// What a line was batched with does not change its translation. A source longer than the model's table of positions, or than
/// kMostSourceTokens, is cut to it (`is_cropped`): its end is lost, its start is translated. So is a prefix that length_limit leaves no
/// room for (`is_prefix_cropped`).
class Translator {
 public:
  Translator(StepModelPtr model, Vocabularies vocabularies, TranslatorSettings settings);

  std::vector<TranslatedLine> translate(const std::vector<TranslationInput>& lines);
  /// Threads that work on a batch of their own each, if there is enough for them.
  int64_t num_workers() const;

 private:
  SearchResults searched(const std::vector<size_t>& order, const std::vector<SearchInput>& inputs) const;
  SearchInput tokenized(const TranslationInput& line, TranslatedLine& result) const;
  Translation finished(const Hypothesis& hypothesis, const TranslationInput& line, const SearchInput& input) const;
  std::vector<std::pair<int32_t, int32_t>> links(const Hypothesis& hypothesis, const std::string& text, const TranslationInput& line,
                                                 const SearchInput& input) const;
  std::vector<int32_t> words_of(const Vocabulary& vocabulary, const std::string& text, std::span<const TokenId> tokens) const;

  StepModelPtr model_;
  Vocabularies vocabularies_;
  TranslatorSettings settings_;
  SearchSettings search_;
};

/// The best translation of each line: what validation needs. Sampling draws by the line's place. Throws Interrupted, as search() does.
std::vector<std::string> translate_lines(StepModel& model, const Vocabularies& vocabularies, const std::vector<std::string>& lines,
                                         const TranslateOptions& options);

}  // namespace lacuna

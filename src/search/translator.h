#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "search/guard.h"
#include "search/search.h"
#include "text/vocabulary.h"

namespace lacuna {

/// One line to translate. `id`, its position in the input, selects its random numbers.
struct TranslationInput {
  std::string text;
  std::string prefix;  ///< the text that the translation must begin with
  int64_t id = 0;
  std::shared_ptr<const TranslateOptions> options = {};  ///< of its own, as run/line_options.h allows them; null = the translator's
  bool is_aligned = true;                                ///< false if nobody asks for its links, although the translator's settings do
};

/// One translation of a line.
struct Translation {
  std::string text;
  double score = 0;                                    ///< the ranking criterion: log_prob over the length penalty
  double log_prob = 0;                                 ///< in nats, summed over all tokens and eos
  std::vector<TokenId> tokens;                         ///< without the last eos; of a text of several sentences, with those between them
  std::vector<float> token_log_probs;                  ///< eos included; none of an empty source
  std::vector<std::pair<int32_t, int32_t>> alignment;  ///< links (source, target), counted from 0, between words or pieces
  bool is_truncated = false;                           ///< cut at the length limit, or where no other token was allowed
  std::optional<GuardVerdict> guard;                   ///< if asked for
  size_t rank = 0;                                     ///< of a text of several sentences: which of their translations it is made of
};

/// The translations of a line, best first. An empty line has one empty translation.
struct TranslatedLine {
  std::vector<Translation> translations;
  int64_t src_pieces = 0;           ///< source pieces that were translated
  double unknown_ratio = 0;         ///< share of unknown tokens among the source's that are not spaces
  bool is_cropped = false;          ///< the line was cut to the longest that the model can read
  bool has_unknown_prefix = false;  ///< a part of the prefix is not in the vocabulary and became the unknown token
  bool is_prefix_cropped = false;   ///< the prefix was cut to the longest allowed translation
  bool is_second_search = false;    ///< the guard preferred what was found without repetitions
};

enum class AlignmentLevel { kNone, kWord, kPiece };

struct TranslatorSettings {
  TranslateOptions options;
  AlignmentLevel alignment = AlignmentLevel::kNone;
  int alignment_layer = -1;                         ///< decoder layer whose cross attention aligns and is guarded; -1 = none
  uint64_t seed = 1;                                ///< seed of sampling
  std::shared_ptr<const Shortlist> shortlist = {};  ///< tokens that may translate a line; null = all
  int alignment_head = -1;                          ///< head of that layer that aligns; -1 = the average of all, as with a guard
  std::function<void()> on_sentence = {};           ///< called for each sentence that is translated, by any of the threads
  std::function<void()> look = {};                  ///< called before each token, by any of the threads; it may throw to end the search
};

/// The longest source that is translated, also on both sides by `lacuna score`: memory and time grow with its square.
inline constexpr int64_t kMostSourceTokens = 16384;

/// Translates lines of text: tokenizes, batches, searches, detokenizes. Lines are processed longest first; results are
/// in the order of the input. Each thread has its own batch, if the model allows that and there are enough lines. The
/// rest of the batch does not change a translation. A source longer than the positions or kMostSourceTokens loses its
/// end (`is_cropped`), and so does a prefix longer than length_limit allows (`is_prefix_cropped`). With translate.guard,
/// translations are judged by search/guard.h.
class Translator {
 public:
  Translator(StepModelPtr model, Vocabularies vocabularies, TranslatorSettings settings);

  /// Returns the translations of each line, in order. Throws Interrupted, as search() does.
  std::vector<TranslatedLine> translate(const std::vector<TranslationInput>& lines);
  /// Returns the number of threads that search at once, given enough lines.
  int64_t num_workers() const;

  // For a search whose queue is somebody else's (live_translator.h): how a line becomes its input, and what is found its translation.

  /// Tokenizes a line and its prefix; sets the flags of `result` for what is cut or unknown. An empty source is not searched for.
  SearchInput prepared(const TranslationInput& line, TranslatedLine& result) const;
  /// Adds to `result` the translations that were found for a line that was prepared, and searches again where translate.guard says so. An
  /// empty source has one empty translation, whatever was found.
  void complete(const TranslationInput& line, const SearchInput& input, const std::vector<Hypothesis>& found, TranslatedLine& result) const;
  /// Searches on the calling thread until the queue is empty. Throws Interrupted, as search() does.
  void search_for(SearchQueue& queue) const { search(*model_, queue, search_); }
  /// Returns the source tokens that the batch of each of `workers` threads may hold.
  int64_t batch_tokens(int64_t workers) const;

 private:
  /// Lines that are searched together, by their places in the input.
  struct Lines {
    const std::vector<TranslationInput>& lines;
    const std::vector<SearchInput>& inputs;
    std::vector<size_t> order;
  };

  std::vector<std::vector<Translation>> translations(const Lines& lines, const SearchSettings& how,
                                                     const std::function<void()>& on_sentence) const;
  SearchResults searched(const Lines& lines, const SearchSettings& how, const std::function<void()>& on_sentence) const;
  void search_again(const Lines& lines, std::vector<TranslatedLine>& results) const;
  SearchSettings without_repetitions() const;
  SearchInput without_repetitions(SearchInput input) const;
  Translation finished(const Hypothesis& hypothesis, const TranslationInput& line, const SearchInput& input) const;
  std::vector<std::pair<int32_t, int32_t>> links(const Hypothesis& hypothesis, const std::string& text, const TranslationInput& line,
                                                 const SearchInput& input) const;
  std::vector<int32_t> words_of(const Vocabulary& vocabulary, const std::string& text, std::span<const TokenId> tokens) const;

  StepModelPtr model_;
  Vocabularies vocabularies_;
  TranslatorSettings settings_;
  SearchSettings search_;
};

/// Returns the best translation of each line, whose position selects its random numbers. Throws Interrupted.
std::vector<std::string> translate_lines(StepModel& model, const Vocabularies& vocabularies, const std::vector<std::string>& lines,
                                         const TranslateOptions& options);
/// Does that for lines with ids and prefixes of their own.
std::vector<std::string> translate_lines(StepModel& model, const Vocabularies& vocabularies, const std::vector<TranslationInput>& lines,
                                         const TranslateOptions& options);

}  // namespace lacuna

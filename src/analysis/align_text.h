#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"

/// Word alignments read off cross attention, and `lacuna align`.
namespace lacuna {

/// The choice of weights that links are read off: one head of a decoder layer, or the average of all.
struct AlignmentChoice {
  int layer = 0;
  std::optional<int64_t> head = {};  ///< none = average
  AlignmentStep step = AlignmentStep::kNormal;
};

enum class LinkUnit { kWord, kPiece };

/// Returns the links of each pair; none where a side is empty or too long. Throws CheckpointError if the model gives no finite numbers.
std::vector<Links> align_pairs(const AnalyzedModel& model, const std::vector<SentencePair>& pairs, const AlignmentChoice& choice,
                               LinkUnit unit, int64_t batch_tokens);

/// What `lacuna align` is asked for, of models.
struct AlignRequest {
  std::string model, reverse_model;  ///< checkpoints or run folders; reverse_model, of the other direction, may be empty
  std::string src, tgt;              ///< files of the text to align
  std::string output = "-";
  std::string level = "word";              ///< word or subword
  std::optional<int> layer;                ///< of the decoder; none = the last but one
  std::optional<int64_t> head;             ///< none = the average of all
  std::string step;                        ///< normal (or empty) or shifted
  std::string symmetrize;                  ///< intersection, union or grow-diag-final-and; empty with one model
  std::string dev_src, dev_tgt, dev_gold;  ///< a development set, which chooses layer, head and step; or empty
  std::optional<int> gold_base;
  OnBadLine bad_lines = OnBadLine::kStop;
  int64_t batch_tokens = 3000;
  std::string device = "cpu";
  std::vector<std::string> overrides = {};  ///< of the models' configurations
  bool shows_progress = false;

  /// The files that are read, beside models.
  std::vector<std::string> texts_to_read() const;
};

/// How much of a text was aligned.
struct AlignedText {
  int64_t pairs = 0, bad_pairs = 0;  ///< all of them, and those that were passed over
  bool is_read = true;               ///< false if nobody reads the output any more
};

/// Aligns the text with the models and writes the links, a line a pair; one that is passed over has an empty one. Throws UsageError for a
/// layer or head that a model does not have, DataError for what is wrong in a text.
AlignedText align_text(const AlignRequest& asked);

/// Aligns the words of the text with those of its translation by how often they occur together, without a model: a hidden Markov model of
/// each direction (data/word_aligner.h), trained on this text, and both symmetrized. Of the request only texts, output, symmetrize (empty:
/// grow-diag-final-and) and bad_lines are read. Writes the links as align_text() does, and throws as it does.
AlignedText align_by_counts(const AlignRequest& asked);

/// Writes one set of links of those in two files, `backward` target-source. Returns false if nobody reads the output any more.
bool symmetrize_files(const std::string& forward, const std::string& backward, const std::string& symmetrization, const std::string& file);

}  // namespace lacuna

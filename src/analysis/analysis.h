#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/alignment_error.h"
#include "analysis/explored_sentence.h"
#include "analysis/importance.h"
#include "analysis/place_measures.h"
#include "analysis/word_weights.h"
#include "config/options.h"

/// `lacuna analyze`: every measure in one pass of forced decoding over given pairs. Definitions: README.md beside this file.
namespace lacuna {

/// The names that --only takes.
inline constexpr const char* kMeasures[] = {"sparsity", "null_rate", "entropy",   "support",   "alpha",     "span",
                                            "gate",     "diversity", "alignment", kMaskEffect, "importance"};

struct AnalysisSettings {
  std::string src, tgt;
  std::string gold;  ///< word alignments; empty = none
  int gold_base = 0;
  bool is_gold_turned = false;  ///< the gold links are (tgt, src)
  int64_t num_pairs = 0;        ///< lines of src
  OnBadLine bad_lines = OnBadLine::kStop;
  std::set<std::string> only = {};  ///< of kMeasures; empty = all
  int64_t batch_tokens = 3000;
  int64_t importance_sentences = 0;  ///< spread evenly over the corpus; others replace pairs that are left out
  bool shuffle_references = false;   ///< measure rows on shuffled references too
  int64_t bootstrap_samples = 1000;
  uint64_t seed = 1;
  std::string overrides = {};                             ///< of the models' attention, as on the command line: for the reader
  int64_t explored = 20;                                  ///< sentences whose weights the report shows, as far as it has room: the first
  std::set<int64_t> saved_lines = {};                     ///< from 0
  std::set<int64_t> saved_layers = {}, saved_heads = {};  ///< empty = all

  bool wants(const std::string& measure) const { return only.empty() || only.contains(measure); }
  /// Returns true if a measure of single rows is wanted.
  bool wants_rows() const { return wants("sparsity") || wants("null_rate") || wants("entropy") || wants("support"); }
};

/// A learned number of each head, averaged over the queries that it was seen on.
struct NumberMean {
  std::vector<double> sums;
  double weight = 0;
  void add(const std::vector<double>& values, double more);
  std::vector<double> mean() const;
};

/// The measures of one place, as README.md and analysis.json call a layer at a site.
struct PlaceAnalysis {
  AttentionSite site;
  int layer;
  std::string type;
  bool is_rectified = false;  ///< rows need not sum to one; where there is a mask, those of the base
  bool shows_mask = false;
  PlaceSums sums, shuffled;
  std::map<std::string, NumberMean> numbers;
  MaskEffect mask_effect;
};

/// The measures of one model.
struct ModelAnalysis {
  std::string name;
  int64_t num_heads = 0, decoder_layers = 0;
  int64_t pairs = 0, empty_pairs = 0, bad_pairs = 0, src_tokens = 0, tgt_tokens = 0;
  LongPairCount long_pairs;
  int64_t max_tokens = 0;                    ///< of a side; pairs with more are long
  std::vector<PlaceAnalysis> places;         ///< encoder_self from the bottom, then decoder_self, then cross
  std::optional<AlignmentErrors> alignment;  ///< systems as system_of says
  int64_t importance_pairs = 0;
  std::vector<ImportanceCorrelation> importance;  ///< [decoder layers]
  ExploredSentences explored;
  std::map<std::string, at::Tensor> saved;  ///< "line.12.cross.0" [heads, queries, keys], line from 1, NaN where a key is not visible
  std::map<int64_t, std::pair<std::vector<std::string>, std::vector<std::string>>> saved_pieces;  ///< source and target, by line from 1
  std::vector<std::string> notes;                                                                 ///< measures that are missing, and why

  size_t place_of(AttentionSite site, int layer) const;
  /// The layer's heads from 0, then their average.
  size_t system_of(int layer, int64_t head, AlignmentStep step) const;
};

/// A model to analyse.
struct AnalyzedModel {
  std::string name;
  Transformer& model;
  Vocabularies vocabularies;
  std::string joiner = {};  ///< of its `translate`
};

/// Pairs with an empty side, those longer than the model can read and, under OnBadLine::kSkip, bad ones are left out and counted. Throws
/// LineError for a bad one otherwise, DataError if no pair is left, and CheckpointError if the model's outputs are not finite numbers.
/// Calls `progress` with the number of pairs done after each batch.
ModelAnalysis analyze_model(const AnalyzedModel& model, const AnalysisSettings& settings, const std::function<void(int64_t)>& progress);

struct MissingMeasure {
  std::string measure, why;
  /// Returns a sentence such as "alpha: no head learns one".
  std::string note() const { return measure + ": " + why; }
};

/// Returns the wanted measures that an analysis of a model with these options would leave out.
std::vector<MissingMeasure> missing_measures(const ModelOptions& options, const AnalysisSettings& settings);

/// Throws ConfigError where `settings.only` names nothing that any of these models has.
void require_measures(const std::vector<std::string>& names, const std::vector<Options>& models, const AnalysisSettings& settings);

}  // namespace lacuna

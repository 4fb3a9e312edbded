#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "search/step_model.h"

namespace lacuna {

/// Loads the models of an ensemble, which only translates and scores (load_model_to_translate), each with the same overrides. `precision`:
/// none = what the first's translate.precision means on the device. Throws DataError unless they share their vocabularies.
std::vector<LoadedModel> load_models(const std::vector<std::string>& paths, const std::string& device,
                                     const std::vector<std::string>& overrides, std::optional<Precision> precision = {});

/// Several models as one, with the vocabularies and options of the first.
struct LoadedEnsemble {
  std::vector<std::shared_ptr<Transformer>> members;
  StepModelPtr model;
  Vocabularies vocabularies;
  Options options;
  int decoder_layers = 0;          ///< that all models have
  int num_heads = 0;               ///< likewise
  AlignmentSource alignment = {};  ///< what links words: the head that was guided, if it is the same one in all models, else an average

  /// Returns what links words in a search with these options. A guard judges by the average of heads, and then that links, too.
  AlignmentSource alignment_with(const TranslateOptions& search) const;
  /// Returns the average over heads of the last layer but one.
  AlignmentSource average() const { return {std::max(0, decoder_layers - 2), -1}; }
};

/// Makes one model of several that vote on each token; of one, itself.
LoadedEnsemble as_ensemble(const std::vector<LoadedModel>& loaded);

/// Throws UsageError where the words of a command line ask for a translate.precision that `device` does not have. If a model's
/// configuration names it, a warning says that products are of fp32.
void require_precision(Precision precision, const std::string& device, const std::vector<std::string>& words);

}  // namespace lacuna

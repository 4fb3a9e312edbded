#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "document/document.h"
#include "run/load_models.h"
#include "search/translator.h"

namespace lacuna {

/// Returns how texts in `language` are split for a model: into sentences as long as those of its training at most. Without a language, the
/// model's own. Throws UsageError, which names `flag`, for a code that is none.
std::shared_ptr<const document::Splitting> splitting_for(const LoadedEnsemble& model, const std::string& language, const std::string& flag);

/// A document whose sentences are translated each for itself.
class SplitText {
 public:
  /// `line` has what the sentences share: a prefix, which is the first one's, and a number that selects random numbers. Where translations
  /// are drawn, equal ones stay.
  SplitText(std::unique_ptr<const document::Document> document, TranslationInput line, bool are_drawn = false)
      : document_(std::move(document)), line_(std::move(line)), are_drawn_(are_drawn) {}

  /// Appends what is to be translated; one empty line where there is nothing.
  void append_to(std::vector<TranslationInput>& lines) const;
  /// Returns how many lines these are.
  size_t size() const { return std::max<size_t>(1, document_->sentences().size()); }
  /// Returns true if the translations are to have word links.
  bool needs_links() const { return document_->needs_links(); }
  /// Returns the translations of the text: the n-th has the n-th of each sentence, or its best where it has fewer; of equal texts, as terms
  /// may make them, the first stays. The log-probability is the sum of the sentences', the score their mean, weighted by the bytes of the
  /// translations, and of the guard's verdicts it is the one with the highest risk.
  TranslatedLine joined(std::span<const TranslatedLine> translated) const;

 private:
  Translation joined(std::span<const TranslatedLine> translated, size_t rank) const;

  std::unique_ptr<const document::Document> document_;
  TranslationInput line_;
  bool are_drawn_;
};

}  // namespace lacuna

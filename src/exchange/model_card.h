#pragma once

#include <string>

#include "exchange/outgoing_model.h"

namespace lacuna {

/// What others may do with a model, as its owner says.
struct ModelTerms {
  std::string license;      ///< an identifier such as apache-2.0 or cc-by-nc-4.0; empty = not said
  std::string attribution;  ///< who made it of what; empty = not said
};

/// True for what may be the identifier of a license.
bool is_license_identifier(const std::string& text);

/// Throws UsageError, naming the flag, for a license that is no identifier and an attribution that is no text.
void require_terms(const ModelTerms& terms);

/// Returns a README.md: the head that the Hugging Face Hub reads (languages, license, tags), where the model comes from, its terms, and
/// `use`, how the format is used, in Markdown.
std::string model_card(const OutgoingModel& model, const ModelTerms& terms, const std::string& use);

}  // namespace lacuna

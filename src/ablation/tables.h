#pragma once

#include <string>

#include "ablation/summary.h"

/// What an ablation found, for people and programs: one row a variant.
namespace lacuna {

/// A table with what its numbers are and what failed below it.
std::string markdown_table(const AblationReport& report);

/// A `tabular` (package booktabs) in a file of its own, to be \input.
std::string latex_table(const AblationReport& report);

/// {"test_set", "signature", "variants": [a summary each], "runs": [the rows of results.jsonl]}; what is unknown is null.
std::string json_report(const AblationReport& report);

}  // namespace lacuna

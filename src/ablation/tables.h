#pragma once

#include <string>

#include "ablation/summary.h"

/// What an ablation found, for people and programs: one row a variant.
namespace lacuna {

/// A table; below it what its numbers are, what failed, and which runs are left out.
std::string markdown_table(const AblationReport& report);

/// A `tabular` (package booktabs) in a file of its own, to be \input.
std::string latex_table(const AblationReport& report);

/// {"test_set", "signature", "variants": [a summary each], "runs": [their rows of results.jsonl], "left_out": [the others]}; what is
/// unknown is null.
std::string json_report(const AblationReport& report);

}  // namespace lacuna

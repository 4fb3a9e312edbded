#pragma once

#include <string>
#include <vector>

#include "ablation/summary.h"

/// The tables of an ablation, for people and programs: a row a variant, the best value of a column in bold.
namespace lacuna {

/// The names of all columns, as `lacuna ablate --columns` takes them, in the tables' order.
std::vector<std::string> table_columns();

/// A variant's name as tables show it: "top-k, k = 4" for topk-k=4. A name of the user's own stays as it is.
std::string display_name(const std::string& variant);

/// A Markdown table; below it definitions, failed runs and runs left out. `columns` are of table_columns(); empty = all.
std::string markdown_table(const AblationReport& report, const std::vector<std::string>& columns = {});

/// A LaTeX `tabular` (package booktabs), to be \input. `columns` are of table_columns(); empty = those that fit the width of a page.
std::string latex_table(const AblationReport& report, const std::vector<std::string>& columns = {});

/// Returns a picture of the table, a self-contained SVG: a row a variant, its BLEU (each seed, their mean, the bootstrap's 95 % interval)
/// and beside it the share of zero weights at each site. Legible on light and dark; marks differ in shape as in color.
std::string svg_plot(const AblationReport& report);

/// Returns table.json: {"test_set", "signature", "variants": [a summary each], "runs": [their rows of results.jsonl], "left_out": [the
/// others]}; what is unknown is null.
std::string json_report(const AblationReport& report);

}  // namespace lacuna

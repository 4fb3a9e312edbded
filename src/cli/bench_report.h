#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ablation/variant.h"
#include "speed/timing.h"

/// What the verbs of `lacuna bench` and lacuna-bench share: reports, and --compare, attention types against softmax in one process.
namespace lacuna {

/// Formats a number with four significant digits.
std::string short_number(double value);
/// Prints a table to stdout; the first row has the column headings.
void print_table(const std::vector<std::vector<std::string>>& rows);
/// Prints a report to stdout: as one JSON object, or its scalar entries line by line.
void print_report(const nlohmann::ordered_json& report, bool as_json);

/// Prints what a GPU did in one `unit` (update, say), as report_of() of speed/gpu_trace.h gives it.
void print_gpu_profile(const nlohmann::ordered_json& profile, const std::string& unit);

/// `lacuna bench train ...` and so on.
int bench_train(const std::vector<std::string>& arguments);
int bench_ranks(const std::vector<std::string>& arguments);
int bench_translate(const std::vector<std::string>& arguments);

/// The text of --compare for --help.
inline constexpr char kCompareHelp[] =
    "Attentions to measure against softmax: types, maps of what model.attention may be, named ones or configuration files, as in lacuna "
    "ablate --attention: topk,'{type: entmax, alpha: learned}',configs/ablations/rela/no_norm.yaml";

/// The least number of pairs of a comparison.
inline constexpr int64_t kFewestPairs = 9;

/// Returns `options` with softmax, as the control whose ratio is 1 but for noise, and with each attention of --compare, some of which may
/// be `defined` by the configuration. Throws UsageError or ConfigError for attentions that the model cannot have.
std::vector<NamedOptions> compared_options(const std::string& compare, const std::vector<Variant>& defined, const Options& options);

/// Prints the report as one JSON object, or as lines and a table of "comparisons".
void print_comparisons(const nlohmann::ordered_json& report, bool as_json);

}  // namespace lacuna

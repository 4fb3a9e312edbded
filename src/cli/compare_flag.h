#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ablation/variant.h"
#include "bench/named_options.h"

/// `--compare` of `lacuna bench train` and `translate`: attention types against softmax in one process, in pairs.
namespace lacuna {

/// What --compare means, for --help.
inline constexpr char kCompareHelp[] =
    "Attentions to measure against softmax: types, maps of what model.attention may be, named ones or configuration files, as in lacuna "
    "ablate --attention: topk,'{type: entmax, alpha: learned}',configs/ablations/rela/no_norm.yaml";

/// Where a comparison's flags begin: fewer pairs say too little.
inline constexpr int64_t kFewestPairs = 9;

/// `options` with each attention of --compare, some of them `defined` by the configuration, and before them with softmax itself: the
/// control, whose ratio is 1 but for noise. Throws UsageError or ConfigError for attentions that the model can't have.
std::vector<NamedOptions> compared_options(const std::string& compare, const std::vector<Variant>& defined, const Options& options);

/// The report as one JSON object, or as facts and a table of "comparisons".
void print_comparisons(const nlohmann::ordered_json& report, bool as_json);

}  // namespace lacuna

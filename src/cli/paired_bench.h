#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ablation/variant.h"
#include "config/options.h"

/// Attention types against softmax in one process, in pairs: what `--compare` of `lacuna bench train` and `translate` does.
namespace lacuna {

/// What --compare means, for --help.
inline constexpr char kCompareHelp[] =
    "Attentions to measure against softmax: types, maps of what model.attention may be, named ones or configuration files, as in lacuna "
    "ablate --attention: topk,'{type: entmax, alpha: learned}',configs/ablations/rela/no_norm.yaml";

/// Where a comparison's flags begin: fewer pairs say too little.
inline constexpr int64_t kFewestPairs = 9;

/// `options` with this under model.attention, or with the attention of a variant of --compare. Throws ConfigError where it has no meaning
/// in the model.
Options with_attention(const Options& options, const ConfigNode& attention);
Options with_attention(const Options& options, const Variant& variant);

/// Types, options and norms of all layers and sites, each once.
std::string attention_in_full(const Options& options);

/// The variants of --compare, some of them `defined` by the configuration, and before them softmax itself: the control, whose ratio is 1
/// but for noise. Throws ConfigError for variants that the model can't have.
std::vector<Variant> variants_with_control(const std::string& compare, const std::vector<Variant>& defined, const Options& options);

/// One pair after another of the same work, first softmax then the variant.
struct PairedSeconds {
  std::vector<double> softmax, variant;

  void measure(const std::function<void()>& with_softmax, const std::function<void()>& with_variant);
};

/// An entry of the report's "comparisons": name, type in full with every option, median of the paired ratios, its 95 % interval, medians.
nlohmann::ordered_json comparison(const Variant& variant, const Options& options, const PairedSeconds& seconds);

/// The report as one JSON object, or as facts and a table of "comparisons".
void print_comparisons(const nlohmann::ordered_json& report, bool as_json);

}  // namespace lacuna

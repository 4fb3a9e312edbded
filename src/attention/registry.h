#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/patterns/pattern.h"
#include "attention/rows/row_functions.h"
#include "config/config_node.h"
#include "config/option_help.h"

/// The types, patterns and norms by name: the lists of CMakeLists.txt as tables, for which CMake writes small sources.
namespace lacuna {

class RowNumbers;
struct CalibratedOptions;

namespace types {

/// A type as the core sees it. `options` points to the type's own struct, which only the type's own functions read.
struct TypeEntry {
  const char* name;
  Info info;
  bool keeps_number;  ///< the forward pass keeps a number of each row that the backward pass need not search for again
  /// Reads the keys of `node` that the type owns (all but type, pattern and norm). Throws ConfigError.
  std::shared_ptr<const void> (*read)(const ConfigNode& node);
  /// Returns the options as a map, defaults included.
  ConfigNode (*write)(const void* options);
  std::vector<OptionHelp> (*help)();
  bool (*is_sparse)(const void* options);
  bool (*needs_scores)(const void* options);  ///< the backward pass reads the scores, too
  int (*num_numbers)(const void* options);    ///< learned numbers that each row takes
  /// Returns the module that computes these numbers; null if there are none.
  std::shared_ptr<RowNumbers> (*make_numbers)(const void* options, int64_t num_heads, int64_t d_model);
  /// Returns the option that is the unit of its parameters, as "max_span 64": with another they would mean something
  /// else. Empty = none.
  std::string (*unit_of_numbers)(const void* options);
  /// Returns the distance beyond which keys have weight 0 in a row with these numbers, and are skipped. Null = none.
  int32_t (*reach)(const void* options, const double* numbers);
  std::vector<Example> (*examples)();
  RowFunctions<double> plain;
  RowFunctions<float> (*avx2)();
  RowFunctions<float> (*avx512)();
};

std::span<const TypeEntry* const> all_types();
/// All names that `type` may have in a configuration: those, and `calibrated`.
std::vector<std::string> known_types();

}  // namespace types

namespace patterns {

struct PatternEntry {
  const char* name;
  bool needs_distance;  ///< has no meaning between two sentences
  /// Reads the keys that the pattern owns (all but type); sets `description` to all its options. Throws ConfigError.
  std::shared_ptr<const AttentionPattern> (*read)(const ConfigNode& node, ConfigNode& description);
  std::vector<OptionHelp> (*help)();
  std::vector<PatternExample> (*examples)();
};

std::span<const PatternEntry* const> all_patterns();

}  // namespace patterns

/// An attention type with its options, and the pattern of each head. For `calibrated`, entry() and options() are the
/// base's, which the core runs; its layer (model/calibrated/) adds the rest.
class AttentionType {
 public:
  /// patterns: one for all heads, or one for each head.
  AttentionType(const types::TypeEntry& entry, std::shared_ptr<const void> options,
                std::vector<std::shared_ptr<const AttentionPattern>> patterns, ConfigNode description, bool needs_distance);
  /// `calibrated` over a base. `description` is that of the whole.
  AttentionType(const AttentionType& base, std::shared_ptr<const CalibratedOptions> calibrated, ConfigNode description);

  /// The name in the configuration; entry().name is the row map's.
  std::string name() const;
  const types::TypeEntry& entry() const { return entry_; }
  const void* options() const { return options_.get(); }
  bool has_one_pattern() const { return patterns_.size() == 1; }
  const AttentionPattern& pattern(int64_t head) const { return *patterns_[patterns_.size() == 1 ? 0 : static_cast<size_t>(head)]; }
  /// Returns true if a pattern depends on the distance between query and key: without meaning on cross attention.
  bool needs_distance() const { return needs_distance_; }
  /// Returns type, options and pattern as in YAML, defaults included.
  const ConfigNode& description() const { return description_; }

  /// True if the core computes the type alone, false for `calibrated`.
  bool is_row_map() const { return calibrated_ == nullptr; }
  /// The options of `calibrated`; null for every other type.
  const CalibratedOptions* calibrated() const { return calibrated_.get(); }
  /// True if each head learns a gate, as `calibrated` does with `combine: gate`.
  bool has_gate() const;
  /// Learned numbers that a row takes.
  int num_numbers() const { return entry_.num_numbers(options()); }

 private:
  const types::TypeEntry& entry_;
  std::shared_ptr<const void> options_;
  std::vector<std::shared_ptr<const AttentionPattern>> patterns_;
  ConfigNode description_;
  bool needs_distance_;
  std::shared_ptr<const CalibratedOptions> calibrated_;
};

/// Reads a bare name or {type: name, pattern: ..., base: ... (calibrated), the type's options}. Throws ConfigError.
std::shared_ptr<const AttentionType> make_attention_type(const ConfigNode& node, int64_t num_heads);

/// Help on `calibrated`, which is no row map but a layer over another type, its base.
struct LayeredTypeHelp {
  std::string name, paper;
  std::string remark;  ///< on its base, as Markdown
  std::vector<OptionHelp> options;
};
LayeredTypeHelp layered_type_help();
/// Returns every type, pattern and norm with its options, for --help-options.
std::string attention_help();

}  // namespace lacuna

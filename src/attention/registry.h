#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/mask_training.h"
#include "attention/patterns/pattern.h"
#include "attention/rows/row_functions.h"
#include "config/config_node.h"

/// What attention can do, by name: the lists of CMakeLists.txt as tables. CMake writes a small file around each name.
namespace lacuna {

class RowNumbers;

namespace types {

/// A type as the core sees it. `options` points to the type's own options struct, which only the type's own functions read.
struct TypeEntry {
  const char* name;
  Info info;
  bool keeps_number;  ///< its forward pass keeps a number of each row, so that the backward pass need not search for it again
  /// Reads the keys of `node` that the type owns (all but type, pattern and norm). Throws ConfigError.
  std::shared_ptr<const void> (*read)(const ConfigNode& node);
  /// The options as a map, defaults included.
  ConfigNode (*write)(const void* options);
  std::string (*help)();  ///< the options as lines of --help-options
  bool (*is_sparse)(const void* options);
  bool (*needs_scores)(const void* options);  ///< its backward pass looks at the scores too
  int (*num_numbers)(const void* options);    ///< learned numbers that each row takes
  /// The module that gives these numbers; null if there are none.
  std::shared_ptr<RowNumbers> (*make_numbers)(const void* options, int64_t num_heads, int64_t d_model);
  /// The option that its parameters are measured by, as "max_span 64": with another they would mean something else. Empty = none.
  std::string (*unit_of_numbers)(const void* options);
  /// The distance in positions beyond which keys have weight 0 in a row with these numbers: the core skips them. Null = no such limit.
  int32_t (*reach)(const void* options, const double* numbers);
  std::vector<Example> (*examples)();
  RowFunctions<double> plain;
  RowFunctions<float> (*avx2)();
  RowFunctions<float> (*avx512)();

  bool takes_mask = false;  ///< its map takes the weights of another type, its base, and the scores of a mask model (row_functions.h)
  // For types with a mask only.
  /// Throws ConfigError at `node`, the base, if its rows do not go with the options.
  void (*check_base)(const void* options, const ConfigNode& node, const Info& base) = nullptr;
  MaskTraining (*mask_training)(const void* options) = nullptr;
};

std::span<const TypeEntry* const> all_types();
/// Their names.
std::vector<std::string> known_types();

}  // namespace types

namespace patterns {

struct PatternEntry {
  const char* name;
  bool needs_distance;  ///< has no meaning between two sentences
  /// Reads the keys of `node` that the pattern owns (all but type) and sets `description` to all its options. Throws ConfigError.
  std::shared_ptr<const AttentionPattern> (*read)(const ConfigNode& node, ConfigNode& description);
  std::string (*help)();  ///< its options as lines of --help-options
  std::vector<PatternExample> (*examples)();
};

std::span<const PatternEntry* const> all_patterns();

}  // namespace patterns

/// An attention type with its options, and the pattern of each head.
class AttentionType {
 public:
  /// patterns: one for all heads, or one for each head. base: the base of a type with a mask, null for others.
  AttentionType(const types::TypeEntry& entry, std::shared_ptr<const void> options,
                std::vector<std::shared_ptr<const AttentionPattern>> patterns, ConfigNode description, bool needs_distance,
                std::shared_ptr<const AttentionType> base = nullptr);

  std::string name() const { return entry_.name; }
  const types::TypeEntry& entry() const { return entry_; }
  const void* options() const { return options_.get(); }
  bool has_one_pattern() const { return patterns_.size() == 1; }
  const AttentionPattern& pattern(int64_t head) const { return *patterns_[patterns_.size() == 1 ? 0 : static_cast<size_t>(head)]; }
  /// True if a pattern looks at how far a key is from the query: without meaning between two sentences.
  bool needs_distance() const { return needs_distance_; }
  /// Type, options and pattern as YAML would say them, defaults included.
  const ConfigNode& description() const { return description_; }

  bool takes_mask() const { return entry_.takes_mask; }
  MaskTraining mask_training() const { return entry_.mask_training(options()); }  ///< of a type with a mask
  /// The type that turns scores into weights: this one, or the base of a type with a mask.
  const AttentionType& of_scores() const { return base_ ? *base_ : *this; }
  /// Learned numbers that a row takes: of_scores()'s, then those of a type with a mask.
  int num_numbers() const;

 private:
  const types::TypeEntry& entry_;
  std::shared_ptr<const void> options_;
  std::vector<std::shared_ptr<const AttentionPattern>> patterns_;
  ConfigNode description_;
  bool needs_distance_;
  std::shared_ptr<const AttentionType> base_;
};

/// Reads {type: name, pattern: ..., base: ... (types with a mask), options of the type} or a bare name. Throws ConfigError for what is
/// unknown or wrong.
std::shared_ptr<const AttentionType> make_attention_type(const ConfigNode& node, int64_t num_heads);

/// Every type, pattern and norm with its options, for --help-options.
std::string attention_help();

}  // namespace lacuna

#pragma once

#include <concepts>
#include <memory>

#include "attention/registry.h"
#include "attention/rows/row_plain.h"
#include "config/option_help.h"

/// Turns a type's, pattern's or norm's file into an entry of the registry. Used by the small files that CMake writes.
namespace lacuna {

/// Stands for a struct without options in read_options().
struct NoOptions {
  template <class Self, class Visitor>
  static void describe(Self& /*self*/, Visitor&& /*visit*/) {}
};

/// Reads the options of a type, pattern or norm from its map; an empty struct has none and needs no describe().
template <class Options>
Options read_own_options(const ConfigNode& node) {
  if constexpr (std::is_empty_v<Options>) {
    read_options<NoOptions>(node);
    return {};
  } else {
    return read_options<Options>(node);
  }
}

template <class Options>
std::vector<OptionHelp> own_options_help() {
  if constexpr (std::is_empty_v<Options>) {
    return {};
  } else {
    return option_help<Options>();
  }
}

template <class Options>
ConfigNode write_own_options(const Options& options) {
  if constexpr (std::is_empty_v<Options>) {
    return ConfigNode::map({});
  } else {
    return write_options(options);
  }
}

namespace types {

template <class Options>
std::shared_ptr<const void> read_type_options(const ConfigNode& node) {
  auto options = std::make_shared<Options>(read_own_options<Options>(node));
  if constexpr (requires { options->check(node); }) options->check(node);
  return options;
}

template <class Options>
ConfigNode write_type_options(const void* options) {
  const auto& typed = *static_cast<const Options*>(options);
  ConfigNode written = write_own_options(typed);
  if constexpr (requires { typed.shorten(written); }) typed.shorten(written);
  return written;
}

template <class Map, class Options, const Info& kInfo>
bool is_sparse([[maybe_unused]] const void* options) {
  if constexpr (requires(const Map map) { map.is_sparse(); }) {
    return map_of<Map, Options>(options).is_sparse();
  } else {
    return kInfo.sparse;
  }
}

template <class Map, class Options>
bool needs_scores([[maybe_unused]] const void* options) {
  if constexpr (requires(const Map map) { map.needs_scores(); }) {
    return map_of<Map, Options>(options).needs_scores();
  } else {
    return BackwardNeedsScores<Map, PlainRow<double>>;
  }
}

template <class Map, class Options>
int num_numbers([[maybe_unused]] const void* options) {
  if constexpr (requires(const Map map) { map.num_numbers(); }) {
    return map_of<Map, Options>(options).num_numbers();
  } else {
    return 0;
  }
}

template <class Options>
std::shared_ptr<RowNumbers> make_numbers([[maybe_unused]] const void* options, [[maybe_unused]] int64_t num_heads,
                                         [[maybe_unused]] int64_t d_model) {
  if constexpr (requires(const Options typed) { typed.make_numbers(num_heads, d_model); }) {
    return static_cast<const Options*>(options)->make_numbers(num_heads, d_model);
  } else {
    return nullptr;
  }
}

template <class Options>
std::string unit_of_numbers([[maybe_unused]] const void* options) {
  if constexpr (requires(const Options typed) { typed.unit_of_numbers(); }) {
    return static_cast<const Options*>(options)->unit_of_numbers();
  } else {
    return {};
  }
}

using ReachFunction = int32_t (*)(const void* options, const double* numbers);

template <class Map, class Options>
constexpr ReachFunction reach_of() {
  if constexpr (requires(const Map map, const double* numbers) { map.reach(numbers); }) {
    return [](const void* options, const double* numbers) -> int32_t { return map_of<Map, Options>(options).reach(numbers); };
  } else {
    return nullptr;
  }
}

template <class Map, class Options, const Info& kInfo>
constexpr TypeEntry type_entry(const char* name, std::vector<Example> (*examples)(), RowFunctions<float> (*avx2)(),
                               RowFunctions<float> (*avx512)()) {
  return {.name = name,
          .info = kInfo,
          .keeps_number = KeepsNumber<Map>,
          .read = read_type_options<Options>,
          .write = write_type_options<Options>,
          .help = own_options_help<Options>,
          .is_sparse = is_sparse<Map, Options, kInfo>,
          .needs_scores = needs_scores<Map, Options>,
          .num_numbers = num_numbers<Map, Options>,
          .make_numbers = make_numbers<Options>,
          .unit_of_numbers = unit_of_numbers<Options>,
          .reach = reach_of<Map, Options>(),
          .examples = examples,
          .plain = RowFunctionsOf<Map, Options, PlainRow<double>>::get(),
          .avx2 = avx2,
          .avx512 = avx512};
}

}  // namespace types

namespace patterns {

template <std::derived_from<AttentionPattern> Pattern, class Options>
std::shared_ptr<const AttentionPattern> read_pattern(const ConfigNode& node, ConfigNode& description) {
  const auto options = read_own_options<Options>(node);
  if constexpr (requires { options.check(node); }) options.check(node);
  description = write_own_options(options);
  if constexpr (std::is_empty_v<Options>) {
    return std::make_shared<Pattern>();
  } else {
    return std::make_shared<Pattern>(options);
  }
}

template <class Pattern, class Options>
constexpr PatternEntry pattern_entry(const char* name, bool needs_distance, std::vector<PatternExample> (*examples)()) {
  return {.name = name,
          .needs_distance = needs_distance,
          .read = read_pattern<Pattern, Options>,
          .help = own_options_help<Options>,
          .examples = examples};
}

}  // namespace patterns
}  // namespace lacuna

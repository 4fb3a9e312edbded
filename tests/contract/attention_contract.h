#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "attention/cpu/run.h"
#include "attention/registry.h"

/// Helpers of the attention contract's tests: every type with every option that its examples use, and every way to
/// compute a row.
namespace lacuna::contract {

/// A way to compute rows and calls. kEmulated: the GPU's kernels of tiles, compiled for the CPU; kEmulatedShort: with
/// those for short rows where these serve, of calls only. ...SideBySide: a row among others, of single rows only.
enum class Engine { kPlainDouble, kEmulated, kEmulatedShort, kGpu, kAvx2, kAvx512, kAvx2SideBySide, kAvx512SideBySide };

/// Returns the engines that this machine has and that compute single rows.
std::vector<Engine> engines();
/// Returns the engines that this machine has for calls.
std::vector<Engine> call_engines();
/// Returns the engines for calls that are not the GPU's kernels.
std::vector<Engine> cpu_engines();
std::string name_of(Engine engine);
bool is_double(Engine engine);
bool is_side_by_side(Engine engine);
bool is_emulated(Engine engine);
/// Makes calls of attention() on floats use the engine.
void use(Engine engine);
/// Returns the device that the floats of such a call lie on.
at::Device device_in_use();

using Row = std::vector<double>;

/// A type of the registry with one choice of options.
struct Variant {
  const types::TypeEntry* entry;
  std::string options;  ///< YAML in flow style
  std::shared_ptr<const void> values;
  Row numbers;  ///< that a row takes, as the type's own module gives them at first
  std::string name() const { return std::string(entry->name) + (options.empty() ? "" : " " + options); }
};

Variant variant(const std::string& type, const std::string& options);
/// Returns the names of the types whose contract this is: those of the registry with a row map.
std::vector<std::string> type_names();
/// Returns a type with its defaults and with each of its examples' options.
std::vector<Variant> variants_of(const std::string& type);
/// Returns the variants of every type of the registry.
std::vector<Variant> all_variants();

/// A test that runs once for each type of the registry, as Types/<suite>.<test>/<type>: --gtest_filter='*/sparsemax'
/// runs a type's.
class PerType : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<Variant> variants() { return variants_of(GetParam()); }
};
#define INSTANTIATE_FOR_EACH_TYPE(suite) \
  INSTANTIATE_TEST_SUITE_P(Types, suite, testing::ValuesIn(type_names()), [](const auto& test) { return test.param; })

/// Returns the variant as a type for calls; `pattern` as YAML.
std::shared_ptr<const AttentionType> type_of(const Variant& variant, const std::string& pattern = "full", int64_t num_heads = 1);

/// Returns every pattern of the registry as YAML, with its defaults and with each of its examples' options.
std::vector<std::string> all_patterns();
/// Returns a pattern with `options` in flow style as YAML.
std::string pattern_yaml(const std::string& name, const std::string& options);
/// Returns the keys that the pattern shows a query, in its own order.
std::vector<int32_t> visible_keys(const AttentionPattern& pattern, int32_t query, int32_t num_keys);
/// Returns true if the query at position i sees key j, by the formula of the pattern's definition: written here anew
/// for each pattern.
bool sees(const AttentionType& type, int64_t head, int32_t i, int32_t j);

/// Turns scores into weights, with `numbers` in place of the variant's. The keys stand at 0, 1, ..., the query at half
/// their number.
Row weights_of(const Variant& variant, Engine engine, const Row& scores, const Row& numbers = {});

struct RowGradients {
  Row scores, numbers;
};
/// Turns d loss / d weights into d loss / d scores (and numbers).
RowGradients gradients_of(const Variant& variant, Engine engine, const Row& scores, const Row& weights_gradient, const Row& numbers = {});

/// Returns the weights by another algorithm than the type's own: sorting, bisection. Written in attention_contract.cpp
/// for each type.
Row independent_weights(const Variant& variant, const Row& scores);

/// Returns normal numbers times `spread`, exact in float; the same for the same seed.
Row random_row(int length, double spread, uint64_t seed);

/// Returns scores that bf16 can hold and that go wrong where care is lacking: half of them at 1e4 and half at -1e4, and
/// all around -1000.
std::vector<Row> hard_bf16_rows(int length);
/// Returns the nearest number that bf16 can hold.
double to_bf16(double value);

// Tolerances, each with its reason.
// Weights in double: the thresholds end within 64 ulp of mass 1.
inline constexpr double kDoubleWeights = 1e-12;
// Weights in float against double: 1e-6 is the contract's.
inline constexpr double kFloatWeights = 1e-6;
// Gradients in double against central differences of step 1e-6, whose own error is about 1e-10 / 1e-6 of the weights'
// 64 ulp.
inline constexpr double kFiniteDifference = 1e-7;
// Gradients in float against double: sums of n products.
inline constexpr double kFloatGradients = 5e-6;
// Gradients for learned numbers, likewise: 1e-5 is the contract's.
inline constexpr double kFloatNumberGradients = 1e-5;
double weights_tolerance(Engine engine);

}  // namespace lacuna::contract

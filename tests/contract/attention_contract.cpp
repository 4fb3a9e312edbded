#include "attention_contract.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "attention/rows/row_numbers.h"
#include "base/random.h"
#include "config/yaml.h"
#include "emulation.h"

namespace lacuna::contract {

std::vector<Engine> engines() {
  std::vector<Engine> all = {Engine::kPlainDouble, Engine::kEmulated, Engine::kAvx2, Engine::kAvx2SideBySide};
  if (cpu_has(CpuTarget::kAvx512)) all.insert(all.end(), {Engine::kAvx512, Engine::kAvx512SideBySide});
  return all;
}

bool is_side_by_side(Engine engine) {
  return engine == Engine::kAvx2SideBySide || engine == Engine::kAvx512SideBySide;
}

bool is_emulated(Engine engine) {
  return engine == Engine::kEmulated || engine == Engine::kEmulatedShort;
}

std::vector<Engine> call_engines() {
  std::vector<Engine> all = engines();
  std::erase_if(all, is_side_by_side);
  all.push_back(Engine::kEmulatedShort);
#if LACUNA_CUDA
  if (at::hasCUDA()) all.insert(all.begin(), Engine::kGpu);
#endif
  return all;
}

std::vector<Engine> cpu_engines() {
  std::vector<Engine> all = call_engines();
  std::erase_if(all, [](Engine engine) { return is_emulated(engine) || engine == Engine::kGpu; });
  return all;
}

std::string name_of(Engine engine) {
  const char* const names[] = {"double", "emulated GPU", "emulated GPU, short rows", "GPU",
                               "avx2",   "avx512",       "avx2, side by side",       "avx512, side by side"};
  return names[static_cast<size_t>(engine)];
}

bool is_double(Engine engine) {
  return engine == Engine::kPlainDouble;
}

namespace {

at::Device current_device = at::kCPU;

}  // namespace

void use(Engine engine) {
  static const cuda::Engine with_short_rows = {cuda::all_emulated_kernels(), shared_bytes},
                            tiles = {cuda::all_emulated_kernels(), shared_bytes, /*takes_short_rows=*/false};
  const cuda::Engine* const emulated = engine == Engine::kEmulated ? &tiles : &with_short_rows;
  cuda::emulate(is_emulated(engine) ? emulated : nullptr);
  current_device = engine == Engine::kGpu ? at::kCUDA : at::kCPU;
  if (engine == Engine::kAvx2) use_attention_target(CpuTarget::kAvx2);
  if (engine == Engine::kAvx512) use_attention_target(CpuTarget::kAvx512);
}

at::Device device_in_use() {
  return current_device;
}

namespace {

Row first_numbers(const types::TypeEntry& entry, const void* options) {
  Row numbers;
  if (const auto module = entry.make_numbers(options, 1, 4))
    for (const RowNumber& number : module->forward(at::zeros({1, 4}))) numbers.push_back(number.values.item<double>());
  return numbers;
}

}  // namespace

Variant variant(const std::string& type, const std::string& options) {
  for (const types::TypeEntry* entry : types::all_types()) {
    if (type != entry->name) continue;
    const auto values = entry->read(parse_yaml(options.empty() ? "{}" : options, "test"));
    return {entry, options, values, first_numbers(*entry, values.get())};
  }
  throw std::runtime_error("no type " + type);
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const types::TypeEntry* entry : types::all_types()) names.emplace_back(entry->name);
  return names;
}

std::vector<Variant> variants_of(const std::string& type) {
  std::vector<Variant> variants = {variant(type, "")};
  for (const types::Example& example : variants[0].entry->examples()) {
    const auto is_it = [&](const Variant& known) { return known.options == example.options; };
    if (std::none_of(variants.begin(), variants.end(), is_it)) variants.push_back(variant(type, example.options));
  }
  return variants;
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const std::string& type : type_names())
    for (const Variant& variant : variants_of(type)) variants.push_back(variant);
  return variants;
}

std::shared_ptr<const AttentionType> type_of(const Variant& variant, const std::string& pattern, int64_t num_heads) {
  ConfigNode node = parse_yaml(variant.options.empty() ? "{}" : variant.options, "test");
  node.set("type", ConfigNode::scalar(variant.entry->name));
  node.set("pattern", parse_yaml("x: " + pattern, "test").entries()[0].second);
  return make_attention_type(node, num_heads);
}

std::string pattern_yaml(const std::string& name, const std::string& options) {
  ConfigNode node = parse_yaml(options.empty() ? "{}" : options, "test");
  std::string yaml = "{type: " + name;
  for (const auto& [key, value] : node.entries()) yaml += ", " + key + ": " + value.text();
  return yaml + "}";
}

std::vector<std::string> all_patterns() {
  std::vector<std::string> all;
  for (const patterns::PatternEntry* entry : patterns::all_patterns()) {
    std::vector<std::string> choices = {pattern_yaml(entry->name, "")};
    for (const PatternExample& example : entry->examples()) {
      const std::string choice = pattern_yaml(entry->name, example.options);
      if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
    }
    all.insert(all.end(), choices.begin(), choices.end());
  }
  return all;
}

std::vector<int32_t> visible_keys(const AttentionPattern& pattern, int32_t query, int32_t num_keys) {
  std::vector<KeySegment> segments;
  pattern.append_visible(query, num_keys, segments);
  std::vector<int32_t> keys;
  for (const KeySegment& segment : segments)
    for (int32_t j = 0; j < segment.count; ++j) keys.push_back(segment.begin + j * segment.stride);
  return keys;
}

bool sees(const AttentionType& type, int64_t head, int32_t i, int32_t j) {
  const ConfigNode* pattern = type.description().find("pattern");
  if (const ConfigNode* heads = pattern->find("heads")) pattern = &heads->items()[static_cast<size_t>(head)];
  const auto option = [&](const char* key) { return std::stoll(pattern->find(key)->text()); };
  const std::string name = pattern->find("type")->text();
  if (name == "full") return true;
  if (name == "local") return std::abs(i - j) <= option("window");
  if (name == "atrous") return (i - j) % option("stride") == 0;
  if (name == "strided") return std::abs(i - j) <= option("window") || (i - j) % option("stride") == 0;
  if (name == "fixed") return i / option("block") == j / option("block") || j % option("block") >= option("block") - option("summary");
  throw std::logic_error("write the formula of the pattern \"" + name + "\" here: tests/contract/attention_contract.cpp, sees()");
}

namespace {

/// A row in memory of its own, with room for whole vectors.
template <class S>
struct RowMemory {
  explicit RowMemory(const Row& row) : length(row.size()), values(row.begin(), row.end()) { values.resize(row.size() + 32); }
  Row row(size_t count) const { return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)}; }
  size_t length;
  std::vector<S> values;
};

types::RowFunctions<float> emulated_rows(const types::TypeEntry& entry) {
  for (const cuda::TypeKernels& kernels : cuda::all_emulated_kernels())
    if (std::string(entry.name) == kernels.type) return kernels.rows;
  throw std::runtime_error(std::string("no kernels of ") + entry.name);
}

template <class S>
types::RowFunctions<S> functions_of(const Variant& variant, Engine engine) {
  if constexpr (std::is_same_v<S, double>) {
    return variant.entry->plain;
  } else {
    if (engine == Engine::kEmulated) return emulated_rows(*variant.entry);
    return engine == Engine::kAvx2 || engine == Engine::kAvx2SideBySide ? variant.entry->avx2() : variant.entry->avx512();
  }
}

template <class S>
types::RowCall<S> call_on(RowMemory<S>& weights, RowMemory<S>& scratch, const RowMemory<S>& positions, const std::vector<S>& numbers,
                          size_t length) {
  types::RowCall<S> call = {};
  call.weights = weights.values.data();
  call.scratch = scratch.values.data();
  call.positions = positions.values.data();
  call.length = static_cast<int>(length);
  call.context.position = static_cast<S>(length / 2);
  call.context.training = true;
  call.context.numbers = numbers.data();
  call.context.num_numbers = static_cast<int>(numbers.size());
  return call;
}

Row positions_of(const Row& scores) {
  Row positions(scores.size());
  std::iota(positions.begin(), positions.end(), 0.0);
  return positions;
}

template <class S>
Row forward(const Variant& variant, Engine engine, const Row& scores, const Row& numbers) {
  RowMemory<S> row(scores), scratch(scores), positions(positions_of(scores));
  const std::vector<S> typed_numbers(numbers.begin(), numbers.end());
  const auto call = call_on(row, scratch, positions, typed_numbers, scores.size());
  const types::RowFunctions<S> functions = functions_of<S>(variant, engine);
  if (!is_side_by_side(engine)) {
    functions.forward(variant.values.get(), call);
    return row.row(scores.size());
  }
  // Among other rows, shorter and longer ones: the fourth of seven.
  constexpr int kLongest = 65;
  scratch.values.resize(std::max(scratch.values.size(), RowMemory<S>(Row(kLongest)).values.size()));
  positions = RowMemory<S>(positions_of(Row(std::max<size_t>(scores.size(), kLongest))));
  auto shared = call;
  shared.scratch = scratch.values.data();
  shared.positions = positions.values.data();
  std::vector<RowMemory<S>> rows;
  std::vector<types::RowPlace<S>> places;
  for (const int length : {1, 20, 3, 0, 9, 64, kLongest}) rows.push_back(length == 0 ? row : RowMemory<S>(random_row(length, 2, 40)));
  for (RowMemory<S>& each : rows)
    places.push_back({each.values.data(), static_cast<int>(each.length), call.context.position, call.context.numbers, nullptr});
  functions.forward_all(variant.values.get(), shared, places.data(), static_cast<int>(places.size()));
  return rows[3].row(scores.size());
}

template <class S>
RowGradients backward(const Variant& variant, Engine engine, const Row& scores, const Row& weights_gradient, const Row& numbers) {
  RowMemory<S> weights(forward<S>(variant, engine, scores, numbers)), z(scores), gradient(weights_gradient), scratch(scores),
      positions(positions_of(scores));
  const std::vector<S> typed_numbers(numbers.begin(), numbers.end());
  Row number_gradients(numbers.size());
  auto call = call_on(weights, scratch, positions, typed_numbers, scores.size());
  call.scores = z.values.data();
  call.gradient = gradient.values.data();
  call.context.number_gradients = number_gradients.data();
  functions_of<S>(variant, engine).backward(variant.values.get(), call);
  return {gradient.row(scores.size()), number_gradients};
}

// --- other algorithms ---

Row softmax_where(const Row& scores, const std::function<bool(double)>& keep) {
  const double top = *std::max_element(scores.begin(), scores.end());
  Row weights;
  double total = 0;
  for (const double z : scores) {
    weights.push_back(keep(z) ? std::exp(z - top) : 0);
    total += weights.back();
  }
  for (double& p : weights) p /= total;
  return weights;
}

Row sorted(Row row) {
  std::sort(row.begin(), row.end(), std::greater<>());
  return row;
}

/// Held, Wolfe & Crowder 1974: the largest support for which the threshold stays below its smallest score.
Row sparsemax_by_sorting(const Row& scores) {
  double sum = 0, tau = 0;
  const Row z = sorted(scores);
  for (size_t k = 0; k < z.size(); ++k) {
    sum += z[k];
    if (1 + static_cast<double>(k + 1) * z[k] > sum) tau = (sum - 1) / static_cast<double>(k + 1);
  }
  Row weights;
  for (const double score : scores) weights.push_back(std::max(score - tau, 0.0));
  return weights;
}

/// tau by bisection between top - 1, where the mass is at least 1, and top, where it is 0.
Row entmax_by_bisection(const Row& scores, double alpha) {
  Row z = scores;
  const double top = *std::max_element(z.begin(), z.end());
  for (double& x : z) x = (x - top) * (alpha - 1);
  const auto weigh = [&](double tau) {
    Row weights;
    for (const double x : z) weights.push_back(x > tau ? std::pow(x - tau, 1 / (alpha - 1)) : 0);
    return weights;
  };
  double low = -1, high = 0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    const Row weights = weigh(middle);
    (std::accumulate(weights.begin(), weights.end(), 0.0) >= 1 ? low : high) = middle;
  }
  Row weights = weigh(low);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& p : weights) p /= total;
  return weights;
}

double option(const Variant& variant, const std::string& key) {
  const ConfigNode written = variant.entry->write(variant.values.get());
  const ConfigNode* node = written.find(key);
  return node == nullptr ? 0 : std::stod(node->text());
}

Row topk_by_sorting(const Variant& variant, const Row& scores) {
  const double n = static_cast<double>(scores.size()), ratio = option(variant, "ratio");
  const double k = ratio > 0 ? std::max(option(variant, "floor"), std::ceil(n / ratio)) : option(variant, "k");
  if (k >= n) return softmax_where(scores, [](double) { return true; });
  const double threshold = sorted(scores)[static_cast<size_t>(k) - 1];
  return softmax_where(scores, [=](double z) { return z >= threshold; });
}

Row span_by_definition(const Variant& variant, const Row& scores) {
  const double ramp = option(variant, "ramp"), query = static_cast<double>(scores.size() / 2);
  const auto mask = [&](size_t j) {
    return std::clamp((ramp + variant.numbers[0] - std::abs(static_cast<double>(j) - query)) / ramp, 0.0, 1.0);
  };
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  for (size_t j = 0; j < scores.size(); ++j)
    if (mask(j) > 0) top = std::max(top, scores[j]);
  Row weights;
  for (size_t j = 0; j < scores.size(); ++j) {
    weights.push_back(mask(j) > 0 ? mask(j) * std::exp(scores[j] - top) : 0);
    total += weights.back();
  }
  for (double& p : weights) p /= total;
  return weights;
}

Row activated(const Variant& variant, const Row& scores) {
  const ConfigNode written = variant.entry->write(variant.values.get());
  const std::string activation = written.find("activation")->text();
  const double slope = option(variant, "slope");
  Row weights;
  for (const double z : scores) {
    if (activation == "relu") weights.push_back(z > 0 ? z : 0);
    if (activation == "leaky_relu") weights.push_back(z > 0 ? z : slope * z);
    if (activation == "gelu") weights.push_back(z / 2 * std::erfc(-z / std::sqrt(2.0)));
    if (activation == "identity") weights.push_back(z);
  }
  return weights;
}

Row sigmoid_by_tanh(const Row& scores) {
  Row weights;
  for (const double z : scores) weights.push_back((1 + std::tanh(z / 2)) / 2);
  return weights;
}

}  // namespace

Row weights_of(const Variant& variant, Engine engine, const Row& scores, const Row& given) {
  const Row& numbers = given.empty() ? variant.numbers : given;
  return is_double(engine) ? forward<double>(variant, engine, scores, numbers) : forward<float>(variant, engine, scores, numbers);
}

RowGradients gradients_of(const Variant& variant, Engine engine, const Row& scores, const Row& weights_gradient, const Row& given) {
  const Row& numbers = given.empty() ? variant.numbers : given;
  return is_double(engine) ? backward<double>(variant, engine, scores, weights_gradient, numbers)
                           : backward<float>(variant, engine, scores, weights_gradient, numbers);
}

Row independent_weights(const Variant& variant, const Row& scores) {
  const std::string name = variant.entry->name;
  if (name == "softmax") return softmax_where(scores, [](double) { return true; });
  if (name == "topk") return topk_by_sorting(variant, scores);
  if (name == "rela") return activated(variant, scores);
  if (name == "sparsemax") return sparsemax_by_sorting(scores);
  if (name == "span") return span_by_definition(variant, scores);
  if (name == "entmax15") return entmax_by_bisection(scores, 1.5);
  if (name == "sigmoid") return sigmoid_by_tanh(scores);  // the sample: tests/attention/sample_type
  if (name != "entmax")
    throw std::logic_error("write another algorithm for the type \"" + name + "\" here: tests/contract/attention_contract.cpp");
  const double alpha = variant.numbers.empty() ? option(variant, "alpha") : variant.numbers[0];
  return alpha == 1 ? softmax_where(scores, [](double) { return true; }) : entmax_by_bisection(scores, alpha);
}

Row random_row(int length, double spread, uint64_t seed) {
  RandomStream random(mix(seed, static_cast<uint64_t>(length)));
  Row row;
  for (int i = 0; i < length; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.next_unit())), angle = 2 * M_PI * random.next_unit();
    row.push_back(static_cast<float>(spread * radius * std::cos(angle)));
  }
  return row;
}

double weights_tolerance(Engine engine) {
  return is_double(engine) ? kDoubleWeights : kFloatWeights;
}

double to_bf16(double value) {
  return static_cast<double>(static_cast<float>(c10::BFloat16(static_cast<float>(value))));
}

std::vector<Row> hard_bf16_rows(int length) {
  Row far_apart = random_row(length, 100, 30), around = random_row(length, 4, 31);
  for (size_t j = 0; j < far_apart.size(); ++j) {
    far_apart[j] = to_bf16(far_apart[j] + (j % 2 == 0 ? 1e4 : -1e4));
    around[j] = to_bf16(around[j] - 1000);
  }
  return {far_apart, around};
}

}  // namespace lacuna::contract

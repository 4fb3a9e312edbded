#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "kernels/embedding.h"
#include "kernels/layers.h"
#include "kernels/matmul.h"
#include "kernels/packed_product.h"
#include "kernels/packed_weight.h"
#include "kernels/projection_loss.h"
#include "kernels/residual_norm.h"
#include "kernels/row_kernels.h"
#include "speed/timing.h"
#include "train/adam.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

/// Sizes of the inputs of timed kernels; the defaults are those of the small model.
struct KernelSizes {
  int64_t tokens = 4096, d_model = 256, d_ff = 1024, vocab_size = 8000, parameters = 7'600'000;
};

/// A fused kernel and the same computation in plain ATen operations.
struct KernelCase {
  std::string name, shape, dtype;
  double operations = 0;  ///< floating-point operations of its matrix products; 0 = measured by bytes
  double bytes = 0;       ///< bytes that it must at least read and write
  Timed fused, plain;
};

constexpr double kDropout = 0.1, kSmoothing = 0.1;
constexpr int32_t kSentence = 16;  // tokens
constexpr double kFloatBytes = 4;

using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

/// Forward and backward of what a function makes of its inputs. The gradient of a scalar is 1, as a loss's.
Timed with_backward(const Inputs& inputs, Function f) {
  return {[inputs, f = std::move(f), gradient = Tensor()]() mutable {
    for (const Tensor& input : inputs) input.mutable_grad() = Tensor();
    const Tensor result = f(inputs);
    if (!gradient.defined()) gradient = result.dim() == 0 ? at::ones_like(result) : at::randn_like(result);
    result.backward(gradient);
  }};
}

Tensor parameter(at::IntArrayRef sizes, double deviation = 1) {
  return (at::randn(sizes) * deviation).requires_grad_();
}

/// Dropout as the kernels take it, over sentences of like length.
Dropout dropout_of(int64_t rows) {
  std::vector<int32_t> lengths(static_cast<size_t>(rows / kSentence), kSentence);
  if (rows % kSentence > 0) lengths.push_back(static_cast<int32_t>(rows % kSentence));
  return {kDropout, /*key=*/1, std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths))};
}

double product(int64_t a, int64_t b, int64_t c) {
  return 2.0 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

std::string by(int64_t a, int64_t b) {
  return fmt::format("{} x {}", a, b);
}

Tensor in_bf16(const Tensor& values) {
  return values.to(at::kBFloat16);
}

/// LibTorch has no factors between float and bf16: bf16x3 is measured against its float.
Tensor as_factor(const Tensor& values, Precision precision) {
  return precision == Precision::kBf16 ? in_bf16(values) : values;
}

KernelCase linear_case(int64_t rows, int64_t depth, int64_t columns, Precision precision) {
  const Inputs inputs = {parameter({rows, depth}), parameter({columns, depth}, 0.05), parameter({columns})};
  const Function fused = [precision](const Inputs& in) { return linear(in[0], in[1], in[2], precision); };
  const Function plain = [precision](const Inputs& in) {
    return at::linear(as_factor(in[0], precision), as_factor(in[1], precision), as_factor(in[2], precision)).to(at::kFloat);
  };
  return {.name = "linear",
          .shape = fmt::format("{} x {} x {}", rows, depth, columns),
          .dtype = name_of(precision),
          .operations = 3 * product(rows, depth, columns),
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

/// How two ways to multiply are called: result, a, b.
using Multiply = std::function<void(const Tensor&, const Tensor&, const Tensor&)>;

/// The three products of a linear layer alone.
void add_products(std::vector<KernelCase>& cases, const Tensor& x, const Tensor& weight, const char* dtype, const Multiply& ours,
                  const Multiply& librarys) {
  const Tensor gradient = at::randn({x.size(0), weight.size(0)}).to(x.scalar_type());
  const auto add = [&](const char* name, const Tensor& a, const Tensor& b) {
    const Tensor result = at::empty({a.size(0), b.size(1)});
    cases.push_back({.name = name,
                     .shape = fmt::format("{} x {} x {}", x.size(0), x.size(1), weight.size(0)),
                     .dtype = dtype,
                     .operations = product(x.size(0), x.size(1), weight.size(0)),
                     .fused = {[=] { ours(result, a, b); }},
                     .plain = {[=] { librarys(result, a, b); }}});
  };
  add("product", x, weight.t());
  add("product, gradient of rows", gradient, weight);
  add("product, gradient of weight", gradient.t(), x);
}

/// By our own loops and by LibTorch.
void add_products(std::vector<KernelCase>& cases, int64_t rows, int64_t depth, int64_t columns) {
  const Tensor x = at::randn({rows, depth}), weight = at::randn({columns, depth});
  const auto in_blocks = [](const auto& kernel) {
    return [=](const Tensor& result, const Tensor& a, const Tensor& b) { product_in_blocks(kernel, result, a, b, /*add=*/false, {}); };
  };
  const auto of_float = [](const Tensor& result, const Tensor& a, const Tensor& b) { at::mm_out(const_cast<Tensor&>(result), a, b); };
  add_products(cases, x, weight, "fp32", in_blocks(float_block_kernels().front().kernel), of_float);
  if (cpu_has(CpuTarget::kAmx)) add_products(cases, x, weight, "bf16x3", in_blocks(amx::kBf16x3Blocks), of_float);
  const auto in_bf16_by_us = [](const Tensor& result, const Tensor& a, const Tensor& b) { matmul_into(result, a, b, /*add=*/false); };
  const auto in_bf16_by_libtorch = [](const Tensor& /*result*/, const Tensor& a, const Tensor& b) { at::mm(a, b); };
  add_products(cases, in_bf16(x), in_bf16(weight), "bf16", in_bf16_by_us, in_bf16_by_libtorch);
}

KernelCase feed_forward_case(int64_t rows, int64_t columns, int64_t inner, Precision precision) {
  const Inputs inputs = {
      parameter({rows, columns}), parameter({inner, columns}, 0.05), parameter({inner}),   parameter({columns, inner}, 0.05),
      parameter({columns}),       parameter({rows, columns}),        parameter({columns}), parameter({columns})};
  const Function fused = [precision, dropout = dropout_of(rows)](const Inputs& in) {
    const ResidualEnd end = {in[5], dropout, {in[6], in[7], false}};
    return feed_forward(in[0], {.inner = {in[1], in[2]}, .outer = {in[3], in[4]}, .dropout = dropout}, end, precision).normed;
  };
  const Function plain = [precision, columns](const Inputs& in) {
    const auto factor = [&](size_t i) { return as_factor(in[i], precision); };
    const Tensor hidden = at::dropout(at::relu(at::linear(factor(0), factor(1), factor(2))), kDropout, true);
    const Tensor output = at::linear(hidden, factor(3), factor(4)).to(at::kFloat);
    return at::layer_norm(in[5] + at::dropout(output, kDropout, true), {columns}, in[6], in[7], kLayerNormEpsilon);
  };
  return {.name = "feed-forward, residual, norm",
          .shape = fmt::format("{} x {} x {}", rows, columns, inner),
          .dtype = name_of(precision),
          .operations = 6 * product(rows, columns, inner),
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

KernelCase norm_case(int64_t rows, int64_t columns) {
  const Inputs inputs = {parameter({rows, columns}), parameter({rows, columns}), parameter({columns}), parameter({columns})};
  const Function fused = [dropout = dropout_of(rows)](const Inputs& in) {
    return residual_norm({in[0], dropout, {in[2], in[3], false}}, in[1]).normed;
  };
  const Function plain = [columns](const Inputs& in) {
    return at::layer_norm(in[0] + at::dropout(in[1], kDropout, true), {columns}, in[2], in[3], kLayerNormEpsilon);
  };
  constexpr double kPasses = 8;  // read two and write two; read two and write two
  return {.name = "residual + dropout + norm",
          .shape = by(rows, columns),
          .dtype = "fp32",
          .bytes = kPasses * kFloatBytes * static_cast<double>(rows * columns),
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

KernelCase activation_case(int64_t rows, int64_t columns, Activation activation) {
  const Inputs inputs = {parameter({rows, columns})};
  const bool is_gelu = activation == Activation::kGelu;
  const Function fused = [activation, dropout = dropout_of(rows)](const Inputs& in) {
    return activation_dropout(in[0], activation, dropout);
  };
  const Function plain = [is_gelu](const Inputs& in) { return at::dropout(is_gelu ? at::gelu(in[0]) : at::relu(in[0]), kDropout, true); };
  constexpr double kPasses = 5;  // read one and write one; read two and write one
  return {.name = is_gelu ? "gelu + dropout" : "relu + dropout",
          .shape = by(rows, columns),
          .dtype = "fp32",
          .bytes = kPasses * kFloatBytes * static_cast<double>(rows * columns),
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

KernelCase embedding_case(int64_t rows, int64_t vocab_size, int64_t columns) {
  const double scale = std::sqrt(static_cast<double>(columns));
  const Inputs inputs = {parameter({vocab_size, columns})};
  const Tensor ids = at::randint(vocab_size, {rows}, at::kLong), position_table = at::randn({kSentence, columns});
  const Tensor positions = at::arange(rows, at::kInt).remainder(kSentence), position_ids = positions.to(at::kLong);
  const Function fused = [=, dropout = dropout_of(rows)](const Inputs& in) {
    return embed(in[0], ids, scale, position_table, positions, dropout);
  };
  const Function plain = [=](const Inputs& in) {
    return at::dropout(at::embedding(in[0], ids) * scale + position_table.index_select(0, position_ids), kDropout, true);
  };
  return {.name = "embedding + positions + dropout",
          .shape = by(rows, columns),
          .dtype = "fp32",
          .bytes = kFloatBytes * static_cast<double>((4 * rows + vocab_size) * columns),  // the gradient of the table is written whole
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

KernelCase loss_case(int64_t rows, int64_t depth, int64_t vocab_size, Precision precision) {
  const Inputs inputs = {parameter({rows, depth}), parameter({vocab_size, depth}, 0.05)};
  const Tensor targets = at::randint(vocab_size, {rows}, at::kLong);
  const Function fused = [=](const Inputs& in) { return projection_loss(in[0], in[1], targets, kSmoothing, precision).loss; };
  const Function plain = [=](const Inputs& in) {
    const Tensor logits = at::linear(as_factor(in[0], precision), as_factor(in[1], precision)).to(at::kFloat);
    return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, /*ignore_index=*/-100, kSmoothing);
  };
  return {.name = "projection + loss",
          .shape = fmt::format("{} x {} x {}", rows, depth, vocab_size),
          .dtype = name_of(precision),
          .operations = 3 * product(rows, depth, vocab_size),
          .fused = with_backward(inputs, fused),
          .plain = with_backward(inputs, plain)};
}

/// The norm for clipping, and the update.
KernelCase adam_case(int64_t parameters) {
  const auto buffers = [&] {
    const Tensor zeros = at::zeros({parameters});
    return AdamBuffers{at::randn({parameters}), zeros, zeros.clone(), {}};
  };
  const PlacedGradients gradients = {{0, parameters, at::randn({parameters})}};
  const AdamStep step = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9, .bias1 = 0.5, .bias2 = 0.5};
  const auto fused = [=, ours = buffers()] {
    sum_of_squares(gradients);
    adam_update(ours, gradients, step);
  };
  const auto plain = [=, theirs = buffers()] {
    gradients.front().gradient.square().sum(at::kDouble).item<double>();
    adam_update_reference(theirs, gradients, step);
  };
  constexpr double kPasses = 8;  // read the gradient; read it and three buffers, and write those
  return {.name = "Adam",
          .shape = std::to_string(parameters),
          .dtype = "fp32",
          .bytes = kPasses * kFloatBytes * static_cast<double>(parameters),
          .fused = {fused},
          .plain = {plain}};
}

/// One step of decoding, without gradients. A single row is measured by the bytes of the weight, which it reads once. Many zeros: three
/// quarters of the numbers, as relu leaves in a trained decoder; these are independent of each other, so rows have fewer in common than
/// there.
KernelCase packed_case(int64_t rows, int64_t depth, int64_t columns, RowZeros zeros, Precision precision = Precision::kFp32) {
  constexpr double kThreeQuarters = .6745;  // of a normal distribution lie below
  const bool has_zeros = zeros == RowZeros::kMany;
  const Tensor numbers = at::randn({rows, depth}), x = has_zeros ? at::relu(numbers - kThreeQuarters) : numbers;
  const Tensor weight = at::randn({columns, depth}), bias = at::randn({columns});
  const auto packed = std::make_shared<const PackedWeight>(weight, precision);
  const auto fused = [=] {
    const at::NoGradGuard no_gradients;
    packed->multiply(x, bias, ProductEnd::kNone, zeros);
  };
  const auto plain = [=] {
    const at::NoGradGuard no_gradients;
    at::linear(x, weight, bias);
  };
  return {.name = has_zeros ? "packed linear after relu, no gradients" : "packed linear, no gradients",
          .shape = fmt::format("{} x {} x {}", rows, depth, columns),
          .dtype = name_of(precision),
          .operations = rows > 1 ? product(rows, depth, columns) : 0,
          .bytes = (precision == Precision::kInt8 ? 1 : kFloatBytes) * static_cast<double>(depth * columns),
          .fused = {fused},
          .plain = {plain}};
}

/// Returns the cases: forward and backward of all kernels that training uses, their products alone, the update, and the packed products of
/// translating.
std::vector<KernelCase> kernel_cases(const KernelSizes& s) {
  at::manual_seed(1);
  std::vector<KernelCase> cases;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16x3, Precision::kBf16}) {
    if (precision == Precision::kBf16x3 && !cpu_has(CpuTarget::kAmx)) continue;
    for (const auto& [depth, columns] :
         {std::pair(s.d_model, s.d_model), std::pair(s.d_model, 3 * s.d_model), std::pair(s.d_model, s.d_ff), std::pair(s.d_ff, s.d_model)})
      cases.push_back(linear_case(s.tokens, depth, columns, precision));
    cases.push_back(feed_forward_case(s.tokens, s.d_model, s.d_ff, precision));
    cases.push_back(loss_case(s.tokens, s.d_model, s.vocab_size, precision));
  }
  for (const int64_t columns : {s.d_model, 3 * s.d_model, s.d_ff}) add_products(cases, s.tokens, s.d_model, columns);
  add_products(cases, s.tokens, s.d_ff, s.d_model);
  add_products(cases, kLossRows, s.d_model, s.vocab_size);
  cases.push_back(norm_case(s.tokens, s.d_model));
  cases.push_back(activation_case(s.tokens, s.d_ff, Activation::kRelu));
  cases.push_back(activation_case(s.tokens, s.d_ff, Activation::kGelu));
  cases.push_back(embedding_case(s.tokens, s.vocab_size, s.d_model));
  cases.push_back(adam_case(s.parameters));
  for (const Precision precision : {Precision::kFp32, Precision::kInt8})
    cases.push_back(packed_case(1, s.d_model, s.vocab_size, RowZeros::kFew, precision));
  for (const int64_t rows : {5, 20, 320}) {
    cases.push_back(packed_case(rows, s.d_model, s.vocab_size, RowZeros::kFew));
    cases.push_back(packed_case(rows, s.d_model, s.d_ff, RowZeros::kFew));
    cases.push_back(packed_case(rows, s.d_ff, s.d_model, RowZeros::kFew));
    cases.push_back(packed_case(rows, s.d_ff, s.d_model, RowZeros::kMany));
  }
  return cases;
}

struct KernelBenchFlags {
  KernelSizes sizes;
  std::string only;
  int64_t rounds = 11, threads = 0;
  bool json = false;

  void declare(CLI::App& app) {
    const auto size = [&](const char* flag, int64_t& value, const std::string& meaning) {
      app.add_option(flag, value, meaning)->check(whole_number_from(1));
    };
    size("--tokens", sizes.tokens, "Tokens of a batch");
    size("--d-model", sizes.d_model, "Width of the residual stream");
    size("--d-ff", sizes.d_ff, "Inner width of the feed-forward layers");
    size("--vocab-size", sizes.vocab_size, "Pieces of the vocabulary");
    size("--parameters", sizes.parameters, "Parameters that Adam updates");
    size("--rounds", rounds, "Times each is measured, in turn with the plain one; the median counts");
    app.add_option("--only", only, "Only the kernels whose name holds this: linear, norm, dropout, loss, Adam, ...");
    app.add_option("--threads", threads, "Threads of the CPU; 0 = OMP_NUM_THREADS, or all cores that the process may use")
        ->check(whole_number_from(0, kMostThreads));
    app.add_flag("--json", json, "Print one JSON object");
    app.footer(
        "Forward and backward with dropout 0.1, each beside the same from LibTorch's plain operations (bf16x3 beside its fp32). GFLOP/s "
        "count the products' "
        "operations, GB/s the bytes that must at least be read and written.");
  }
};

Json line_of(const KernelCase& measured) {
  const double ms = measured.fused.median_ms(), plain_ms = measured.plain.median_ms();
  Json line = {{"kernel", measured.name}, {"shape", measured.shape}, {"dtype", measured.dtype}, {"ms", ms}, {"plain_ms", plain_ms}};
  const bool is_product = measured.operations > 0;
  const double work = 1e-6 * (is_product ? measured.operations : measured.bytes);  // a million a millisecond is a thousand million a second
  line[is_product ? "gflops" : "gigabytes_per_second"] = work / ms;
  line[is_product ? "plain_gflops" : "plain_gigabytes_per_second"] = work / plain_ms;
  return line;
}

Json measure(const KernelBenchFlags& flags) {
  Json lines = Json::array();
  for (KernelCase& one : kernel_cases(flags.sizes)) {
    if (one.name.find(flags.only) == std::string::npos) continue;
    std::vector<Timed> both = {one.fused, one.plain};
    time_in_turn(both, flags.rounds);
    one.fused = both[0];
    one.plain = both[1];
    lines.push_back(line_of(one));
  }
  if (lines.empty()) throw UsageError("--only: no kernel's name holds \"" + flags.only + "\"; leave it out to see them all");
  return lines;
}

void print_kernel_lines(const Json& lines) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "shape", "dtype", "ms", "plain ms", "times faster", "speed"}};
  for (const Json& line : lines) {
    const bool is_product = line.contains("gflops");
    const double speed = line[is_product ? "gflops" : "gigabytes_per_second"].get<double>();
    const double ms = line["ms"].get<double>(), plain_ms = line["plain_ms"].get<double>();
    rows.push_back({line["kernel"].get<std::string>(), line["shape"].get<std::string>(), line["dtype"].get<std::string>(), short_number(ms),
                    short_number(plain_ms), short_number(plain_ms / ms), short_number(speed) + (is_product ? " GFLOP/s" : " GB/s")});
  }
  print_table(rows);
}

int bench_kernels(const std::vector<std::string>& arguments) {
  CommandLine app("The fused pieces of training and translating, each beside the same from LibTorch's plain operations.",
                  "lacuna-bench kernels");
  KernelBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  use_threads(flags.threads);
  Json report = {{"threads", at::get_num_threads()},
                 {"instruction_set", name_of(row_kernels<float>().target)},
                 {"matmul_backend", name_of(matmul_backend())},
                 {"rounds", flags.rounds}};
  report["lines"] = measure(flags);
  print_report(report, flags.json);
  if (!flags.json) print_kernel_lines(report["lines"]);
  return 0;
}

}  // namespace

Verb kernels_verb() {
  return {"kernels", "each fused kernel beside plain LibTorch operations", bench_kernels};
}

}  // namespace lacuna

#include <ATen/Parallel.h>

#include "bench/kernel_cases.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "kernels/matmul.h"
#include "kernels/row_kernels.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

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

#include <c10/core/Device.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <iostream>

#include "base/durable_files.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "speed/training_speed.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

struct TrainBenchFlags {
  int64_t steps = 30, warmup = 5, pairs = 21;
  std::string folder = "runs/bench", compare;
  bool json = false, profile = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.declare_configuration(app);
    common.declare_runtime(app);
    auto* timed = app.add_option("--steps", steps, "Updates that are timed")->check(whole_number_from(1));
    app.add_option("--warmup", warmup, "Updates before them, and before the pairs of --compare")->check(whole_number_from(0));
    app.add_flag(
        "--profile", profile,
        "Say where each millisecond of an update goes: on the CPU forward and backward; on a GPU by kernel, with the share of time in "
        "which it is busy, launches, synchronizations and allocations");
    auto* compares = app.add_option("--compare", compare,
                                    std::string(kCompareHelp) +
                                        ". A pair is one update with each, on the same batches; softmax against itself is the control")
                         ->excludes(timed);
    app.add_option("--pairs", pairs, "Pairs of updates with --compare, at least 9")
        ->check(whole_number_from(kFewestPairs))
        ->needs(compares);
    app.add_option("--folder", folder, "Where vocabulary and token cache are kept");
    app.add_flag("--json", json, "Print one JSON object");
  }
};

void print_profile(const Json& profile) {
  double whole = 0;
  for (const Json& part : profile["parts"]) whole += part["forward_ms"].get<double>() + part["backward_ms"].get<double>();
  std::vector<std::vector<std::string>> rows = {{"part", "forward ms", "backward ms", "share"}};
  for (const Json& part : profile["parts"]) {
    const double forward = part["forward_ms"].get<double>(), backward = part["backward_ms"].get<double>();
    rows.push_back({part["part"].get<std::string>(), fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward),
                    fmt::format("{:.1f} %", 100 * (forward + backward) / whole)});
  }
  const double speed = profile["product_gflops"].get<double>(), alone = profile["product_gflops_alone"].get<double>();
  std::cout << fmt::format(
      "products                     {:.4g} GFLOP an update at {:.4g} GFLOP/s: {:.3f} of the {:.4g} that they reach alone\n",
      profile["product_gflop_per_update"].get<double>(), speed, speed / alone, alone);
  print_table(rows);
}

}  // namespace

int bench_train(const std::vector<std::string>& arguments) {
  CommandLine app(
      "Target tokens per second of training, data wait, peak memory, and on the CPU the share of matrix products; or, with --compare, "
      "the time of an update with other attention types over softmax's.",
      "lacuna bench train");
  TrainBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  if (flags.profile && !flags.compare.empty()) throw UsageError("--profile is of one attention; leave --compare out, or --profile");
  std::vector<Variant> defined;
  const std::optional<Configuration> configuration = flags.common.configuration(app, &defined);
  if (!configuration) return 0;
  const Options& options = configuration->options;
  make_parent_of(std::filesystem::path(flags.folder) / "cache");
  if (!flags.compare.empty()) {
    const TimedUpdates pairs = {.folder = flags.folder, .warmup = flags.warmup, .timed = flags.pairs};
    print_comparisons(training_comparisons(compared_options(flags.compare, defined, options), pairs), flags.json);
    return 0;
  }
  const Json report = training_speed(options, {.folder = flags.folder, .warmup = flags.warmup, .timed = flags.steps}, flags.profile);
  print_report(report, flags.json);
  if (!flags.profile || flags.json) return 0;
  if (at::Device(options.device).is_cpu())
    print_profile(report["profile"]);
  else
    print_gpu_profile(report["profile"], "update");
  return 0;
}

}  // namespace lacuna

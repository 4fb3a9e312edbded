#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <iostream>

#include "base/durable_files.h"
#include "base/interrupt.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "ranks/gloo_group.h"
#include "ranks/launcher.h"
#include "ranks/place.h"
#include "ranks/stage.h"
#include "ranks/watch.h"
#include "run/joint_start.h"
#include "speed/rank_speed.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

struct RanksBenchFlags {
  int64_t ranks = 2, steps = 15, warmup = 3;
  std::string folder = "runs/bench";
  bool json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.declare_configuration(app);
    common.declare_runtime(app);
    app.add_option("-n", ranks, "Processes that are started on this machine, unless a launcher has started several")
        ->check(whole_number_from(2, 4096));
    app.add_option("--steps", steps, "Updates that are timed, of each kind")->check(whole_number_from(1));
    app.add_option("--warmup", warmup, "Updates before them")->check(whole_number_from(0));
    app.add_option("--folder", folder, "Where vocabulary and token cache are kept");
    app.add_flag("--json", json, "Print one JSON object");
    app.footer(
        "The same updates in turn: each rank without the others (ms_alone), together, and together with the exchange after the backward "
        "pass. efficiency is ms_alone over ms_update. The estimates for more ranks are a model, not a measurement.");
  }
};

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

void print_estimates(const Json& estimates) {
  std::vector<std::vector<std::string>> rows = {{"efficiency, estimated"}};
  for (const char* const key : {"efficiency", "efficiency_of_4_times_the_batches"})
    for (const auto& [ranks, share] : estimates.front().at(key).items())
      rows.front().push_back(ranks + (key == std::string("efficiency") ? " ranks" : " ranks, 4 x the batches"));
  for (const Json& estimate : estimates) {
    rows.push_back({estimate.at("network").get<std::string>()});
    for (const char* const key : {"efficiency", "efficiency_of_4_times_the_batches"})
      for (const auto& [ranks, share] : estimate.at(key).items()) rows.back().push_back(percent(share.get<double>()));
  }
  print_table(rows);
}

/// Measures as one of the ranks of `joined`, which is at `place`; rank 0 prints.
int measure(const CommandLine& app, const RanksBenchFlags& flags, const RankPlace& place, Group& joined, Watch& watch) {
  std::optional<Configuration> configuration = on_all_ranks(joined, [&] { return flags.common.configuration(app); });
  if (!configuration) return 0;
  const std::unique_ptr<Group> of_gpus = take_gpus(configuration->options, place, joined);
  Group& group = of_gpus ? *of_gpus : joined;
  const Options& options = configuration->options;
  watch.set_timeout(std::chrono::seconds(options.train.rank_timeout));
  share_threads(group, options.threads);
  require_same_start(group, options);
  on_all_ranks(group, [&] { make_parent_of(std::filesystem::path(flags.folder) / "cache"); });
  const Json report = rank_speed(options, {.folder = flags.folder, .warmup = flags.warmup, .timed = flags.steps}, group);
  if (!group.is_first()) return 0;
  print_report(report, flags.json);
  if (!flags.json) print_estimates(report.at("estimates"));
  return 0;
}

/// Starts the same command in several processes here.
int launch_here(int64_t ranks, const std::vector<std::string>& arguments) {
  Launch plan = {.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "bench", "ranks"}, .ranks = static_cast<int>(ranks)};
  plan.command.insert(plan.command.end(), arguments.begin(), arguments.end());
  handle_interrupts();
  return launch(plan);
}

}  // namespace

int bench_ranks(const std::vector<std::string>& arguments) {
  CommandLine app(
      "Training by several processes on this machine, or on those that a launcher has started: what an update takes with the others and "
      "without, what it sends, how fast messages are, and an estimate for more ranks on other networks.",
      "lacuna bench ranks");
  RanksBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  const bool only_prints = flags.common.dump_config || flags.common.help_options;
  const RankPlace place = place_from_environment();
  if (place.is_alone() && !only_prints) return launch_here(flags.ranks, arguments);
  if (only_prints) {
    if (place.rank == 0) flags.common.configuration(app);
    return 0;
  }
  const std::unique_ptr<Group> group = join(place);
  speak_as_rank(*group);
  Watch watch(*group);
  try {
    return measure(app, flags, place, *group, watch);
  } catch (const LostRankError& error) {
    watch.end(error);
  } catch (...) {
    if (!has_ended_together()) watch.say_why_we_leave(Failure(std::current_exception()).text);
    throw;
  }
}

}  // namespace lacuna

#include <iostream>

#include "base/error.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

constexpr char kHelp[] =
    "How fast it is: lacuna bench WHAT [OPTIONS]; lacuna bench WHAT --help says more.\n\n"
    "  train      updates on a corpus; --profile: where each millisecond goes; --compare: attention types side by side\n"
    "  ranks      training by several processes: what an update takes with the others and without, and an estimate for more of them\n"
    "  translate  a model on a text; --compare: the same model with other attention\n\n"
    "The attention operation alone, kernels, and costs by sentence length are measured by lacuna-bench, which is built from the\n"
    "sources: scripts/build.sh cpu lacuna_bench\n";

int run_bench(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (what == "-h" || what == "--help") {
    std::cout << kHelp;
    return 0;
  }
  if (what == kMarkdownHelp) {
    for (const auto bench : {bench_train, bench_ranks, bench_translate}) bench(arguments);
    return 0;
  }
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (what == "train") return bench_train(rest);
  if (what == "ranks") return bench_ranks(rest);
  if (what == "translate") return bench_translate(rest);
  if (what == "attention" || what == "kernels" || what == "lengths")
    throw UsageError(what + " is measured by another program: scripts/build.sh cpu lacuna_bench builds it, and build/cpu/lacuna-bench " +
                     what + " runs it");
  throw UsageError("\"" + what + "\" is not something to measure; expected train, ranks or translate");
}

}  // namespace

Verb bench_verb() {
  return {"bench", "speed of training and translating; attention types side by side", run_bench};
}

}  // namespace lacuna

#include <iostream>

#include "base/error.h"
#include "cli/bench_report.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

constexpr char kHelp[] =
    "How fast it is: lacuna bench WHAT [OPTIONS]; lacuna bench WHAT --help says more.\n\n"
    "  train      updates on a corpus; --profile: where each millisecond goes; --compare: attention types side by side\n"
    "  translate  a model on a text; --compare: the same model with other attention\n"
    "  attention  the attention operation alone\n"
    "  kernels    each fused kernel beside plain operations\n"
    "  lengths    what a token costs as sentences grow\n";

int run_bench(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (what == "-h" || what == "--help") {
    std::cout << kHelp;
    return 0;
  }
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (what == "train") return bench_train(rest);
  if (what == "translate") return bench_translate(rest);
  if (what == "attention") return bench_attention(rest);
  if (what == "kernels") return bench_kernels(rest);
  if (what == "lengths") return bench_lengths(rest);
  throw UsageError("\"" + what + "\" is not something to measure; expected train, translate, attention, kernels or lengths");
}

}  // namespace

Verb bench_verb() {
  return {"bench", "speed of training, translating, attention and kernels; attention types side by side, and by length", run_bench};
}

}  // namespace lacuna

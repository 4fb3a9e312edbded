#include "base/error.h"
#include "cli/bench_report.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

int run_bench(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
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

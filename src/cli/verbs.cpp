#include "cli/verb.h"

namespace lacuna {

Program program() {
  return {"lacuna", "trains neural machine translation models and translates with them"};
}

// CMakeLists.txt lists the same files.
std::vector<Verb> all_verbs() {
  return {train_verb(),     launch_verb(), average_verb(), quantize_verb(), export_verb(),  import_verb(),   shortlist_verb(), split_verb(),
          translate_verb(), serve_verb(),  score_verb(),   evaluate_verb(), analyze_verb(), align_verb(),    aer_verb(),       vocab_verb(),
          distill_verb(),   check_verb(),  info_verb(),    ablate_verb(),   bench_verb(),   reference_verb()};
}

}  // namespace lacuna

#include "cli/verb.h"

namespace lacuna {

Program program() {
  return {"lacuna-bench", "measures the parts of lacuna: the attention operation, kernels, costs by sentence length"};
}

Verb attention_verb();
Verb kernels_verb();
Verb lengths_verb();

std::vector<Verb> all_verbs() {
  return {attention_verb(), kernels_verb(), lengths_verb()};
}

}  // namespace lacuna

#pragma once

#include "ablation/summary.h"

namespace lacuna {

/// Two variants with two seeds each, and one that failed.
inline AblationReport sample_report() {
  const auto row = [](const std::string& variant, int64_t seed, double bleu) {
    return RunResult{.variant = variant,
                     .seed = seed,
                     .test_set = "test2016",
                     .signature = "nrefs:1",
                     .bleu = bleu,
                     .chrf = 60,
                     .bleu_interval = 1.5,
                     .valid_loss = 1.25,
                     .train_speed = 12345.6,
                     .parameters = 7654321,
                     .epochs = 6,
                     .updates = 1200};
  };
  std::vector<RunResult> rows = {row("softmax", 1, 40), row("rela_g", 1, 39), row("softmax", 2, 42), row("rela_g", 2, 41.5)};
  rows[1].sparsity = rows[3].sparsity = {{"cross", .75}, {"encoder_self", .5}};
  rows[1].comparison = Comparison{.against = "softmax", .seed = 1, .difference = -1, .p_value = .04};
  rows[3].comparison = Comparison{.against = "softmax", .seed = 2, .difference = -.5, .p_value = .25};
  rows.push_back({.variant = "bad<one>", .seed = 1, .error = "the gradient was\nnot finite | ever"});
  return summarize(rows, {"softmax", "not_run", "rela_g"}, {.fingerprints = {{"softmax", ""}, {"rela_g", ""}, {"bad<one>", ""}}});
}

}  // namespace lacuna

#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// One verb of the command line. `run` takes the words after it, returns the exit code and throws Error if the verb fails: `main` alone
/// prints errors and maps them to exit codes. Each verb is one file, `src/cli/<verb>.cpp`, that defines `<verb>_verb()`.
struct Verb {
  std::string name;
  std::string summary;  ///< one line for `lacuna --help`; empty = the verb is not listed there
  int (*run)(const std::vector<std::string>& arguments);

  bool is_hidden() const { return summary.empty(); }
};

/// The program that the verbs belong to: `lacuna` or `lacuna-bench`, which share `main`.
struct Program {
  std::string name, summary;
};

/// "lacuna 0.1.0 (git hash)"; without the parentheses if it was built outside of a checkout.
std::string version_text();
/// Version, build, LibTorch, device, instruction set, threads: one fact a line.
std::string build_text();

// Each program has one source that defines both.
Program program();
/// All verbs of the program, in the order of its --help.
std::vector<Verb> all_verbs();

Verb train_verb();
Verb launch_verb();
Verb translate_verb();
Verb distill_verb();
Verb split_verb();
Verb serve_verb();
Verb score_verb();
Verb evaluate_verb();
Verb analyze_verb();
Verb align_verb();
Verb aer_verb();
Verb average_verb();
Verb quantize_verb();
Verb export_verb();
Verb import_verb();
Verb shortlist_verb();
Verb vocab_verb();
Verb check_verb();
Verb info_verb();
Verb bench_verb();
Verb ablate_verb();
Verb reference_verb();

}  // namespace lacuna

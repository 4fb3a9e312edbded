#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// One verb of the command line (`lacuna train ...`). `run` takes the words after the verb, returns the exit code and throws Error for what
/// goes wrong: `main` alone prints errors and maps them to exit codes. Each verb is one file, `src/cli/<verb>.cpp`, that defines
/// `<verb>_verb()`.
struct Verb {
  std::string name;
  std::string summary;  ///< one line for `lacuna --help`
  int (*run)(const std::vector<std::string>& arguments);
};

/// All of them.
std::vector<Verb> all_verbs();

Verb train_verb();
Verb translate_verb();
Verb score_verb();
Verb evaluate_verb();
Verb analyze_verb();
Verb align_verb();
Verb aer_verb();
Verb average_verb();
Verb quantize_verb();
Verb shortlist_verb();
Verb vocab_verb();
Verb check_verb();
Verb info_verb();
Verb bench_verb();
Verb ablate_verb();

}  // namespace lacuna

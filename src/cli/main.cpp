#include <c10/util/Exception.h>

#include <csignal>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/spelling.h"
#include "cli/verb.h"
#include "cli/version.h"

namespace lacuna {
namespace {

constexpr int kBrokenPipe = 128 + SIGPIPE;

void print_help() {
  std::cout << "lacuna: trains neural machine translation models and translates with them\n\nlacuna VERB [FLAG ...]\n\n";
  for (const Verb& verb : all_verbs()) std::cout << "  " << verb.name << std::string(12 - verb.name.size(), ' ') << verb.summary << "\n";
  std::cout << "\nlacuna VERB --help says what a verb takes; lacuna --version what was built.\n";
}

int run_verb(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) {
    if (verb.name == name) return verb.run(arguments);
    names.push_back(verb.name);
  }
  throw UsageError("\"" + name + "\" is not a verb; known verbs: " + join(names) + did_you_mean(name, names));
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("a verb is missing: lacuna --help lists them");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return 0;
  }
  if (words[0] == "--version" || words[0] == "--build-info") {
    std::cout << (words[0] == "--version" ? version_text() : build_text()) << "\n";
    return 0;
  }
  return run_verb(words[0], {words.begin() + 1, words.end()});
}

/// Says what went wrong on stderr; the exit code is in users' scripts, so it is kept as documented.
int report(const std::string& message, int exit_code) {
  std::cerr << "lacuna: error: " << message << std::endl;
  return exit_code;
}

int guarded(const std::vector<std::string>& words) {
  try {
    const int code = run(words);
    std::cout.flush();
    return std::cout.good() ? code : kBrokenPipe;
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const c10::Error& error) {
    return report(std::string("LibTorch: ") + error.what_without_backtrace(), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  lacuna::ignore_broken_pipes();
  return lacuna::guarded({argv + 1, argv + argc});
}

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/spelling.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/version.h"

namespace lacuna {
namespace {

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

int run_words(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("a verb is missing: lacuna --help lists them");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (words.size() > 1 && !words[1].starts_with('-')) return run_verb(words[1], {"--help"});
    print_help();
    return 0;
  }
  if (words[0] == "--version" || words[0] == "--build-info") {
    std::cout << (words[0] == "--version" ? version_text() : build_text()) << "\n";
    return 0;
  }
  return run_verb(words[0], {words.begin() + 1, words.end()});
}

/// Where the program was started without stdin, stdout or stderr, the first files that it opens would have their numbers, and what is meant
/// for these would go there, log lines into translations. /dev/null takes the numbers, opened so that their use fails as it would without.
void take_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // gives the lowest number that is free
}

/// True if nobody reads stdout any more, as after `| head`.
bool is_stdout_abandoned() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// The exit code of a verb that ended well, once all it printed is out. An abandoned stdout is the user's wish, so nothing is said about
/// it.
int with_output_written(int code) {
  std::cout.flush();
  if (std::cout.good()) return code;
  if (is_stdout_abandoned()) return kBrokenPipe;
  throw MachineError("stdout cannot be written: its disk is full, or it is closed");
}

/// Who speaks in an error message: "lacuna train", or "lacuna" where there is no such verb.
std::string speaker(const std::vector<std::string>& words) {
  const std::vector<Verb> verbs = all_verbs();
  const bool is_verb = !words.empty() && std::any_of(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == words[0]; });
  return is_verb ? "lacuna " + words[0] : "lacuna";
}

int guarded(const std::vector<std::string>& words) {
  const auto report = [&](const std::string& message, int exit_code) {
    std::cerr << speaker(words) << ": error: " << message << std::endl;
    log_error_to_file(message);
    return exit_code;
  };
  try {
    return with_output_written(run_words(words));
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    return report((is_out_of_memory(error) ? "out of memory: " : "LibTorch: ") + std::string(error.what_without_backtrace()), 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

/// Ends the program. At once, for when it ends LibTorch forgets its operators one by one, which takes as long as some verbs do; only a
/// search for leaks waits for that.
int ended_with(int code) {
#ifdef LACUNA_SANITIZE
  return code;
#else
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  lacuna::take_missing_streams();
  lacuna::ignore_signals_of_writes();
  return lacuna::ended_with(lacuna::guarded({argv + 1, argv + argc}));
}

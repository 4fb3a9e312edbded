#include <c10/util/Exception.h>
#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>

#include "base/device.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/output.h"
#include "base/spelling.h"
#include "base/system_error.h"
#include "cli/verb.h"

/// How jemalloc, which stands in for malloc, is set; MALLOC_CONF goes before. Freed memory is kept for what is allocated next, and taken in
/// huge pages where there are any: updates allocate the same again and again. One arena, of large tensors too, and any freed range may
/// be split: few threads allocate, and what one frees serves another, whatever its size.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the library's name for it, and its type
const char* malloc_conf = "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,narenas:1,oversize_threshold:0,lg_extent_max_active_fit:20";

namespace lacuna {
namespace {

void print_help() {
  const auto [name, summary] = program();
  std::cout << name << ": " << summary << "\n\n" << name << " VERB [FLAG ...]\n\n";
  for (const Verb& verb : all_verbs())
    if (!verb.is_hidden()) std::cout << "  " << verb.name << std::string(12 - verb.name.size(), ' ') << verb.summary << "\n";
  std::cout << "\n" << name << " VERB --help lists the flags of a verb, " << name << " --version prints the version.\n";
}

/// What to use in place of a verb that other translation programs have; empty if `name` is none.
std::string hint_for_foreign_verb(const std::string& name) {
  static const std::map<std::string, std::string> hints = {
      {"decode", "use lacuna translate"},
      {"predict", "use lacuna translate"},
      {"generate", "use lacuna translate"},
      {"interactive", "use lacuna translate"},
      {"infer", "use lacuna translate"},
      {"inference", "use lacuna translate"},
      {"fit", "use lacuna train"},
      {"finetune", "use lacuna train with train.init_from, the checkpoint to start from"},
      {"resume", "use lacuna train: the same command goes on where it stopped"},
      {"validate", "use lacuna evaluate for translations, lacuna score for a loss"},
      {"test", "use lacuna evaluate for translations, lacuna score for a loss"},
      {"bleu", "use lacuna evaluate"},
      {"rescore", "use lacuna score"},
      {"build-vocab", "use lacuna vocab, or none: lacuna train makes the vocabulary"},
      {"tokenize", "no such step is needed: lacuna train and translate take plain text"},
      {"preprocess", "no such step is needed: lacuna train takes plain text"},
      {"prepare", "no such step is needed: lacuna train takes plain text"},
      {"server", "use lacuna serve"},
      {"convert", "use lacuna export for other programs, lacuna import for models of theirs, lacuna quantize for a smaller model"}};
  std::string plain = name;
  std::replace(plain.begin(), plain.end(), '_', '-');
  const auto found = hints.find(plain);
  return found == hints.end() ? "" : found->second;
}

[[noreturn]] void refuse_verb(const std::string& name, const std::vector<std::string>& known) {
  const std::string message = "\"" + name + "\" is not a verb", list = "lacuna --help lists them";
  if (const std::string hint = hint_for_foreign_verb(name); !hint.empty()) throw UsageError(message + ": " + hint + " (" + list + ")");
  const std::string nearest = nearest_word(name, known);
  throw UsageError(message + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?") + (nearest.empty() ? "; " : " (") + list +
                   (nearest.empty() ? "" : ")"));
}

int run_verb(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) {
    if (verb.name == name) return verb.run(arguments);
    if (!verb.is_hidden()) names.push_back(verb.name);
  }
  refuse_verb(name, names);
}

int run_words(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("a verb is missing: " + program().name + " --help lists them");
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

/// Opens /dev/null for each of stdin, stdout and stderr that the program was started without. Otherwise the first files that it opens would
/// get these numbers, and log lines would end up among translations. It is opened so that reading or writing still fails.
void reopen_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // gives the lowest number that is free
}

/// Returns true if nobody reads stdout any more, as after `| head`.
bool is_stdout_abandoned() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// Flushes stdout and returns the exit code: `code`, or kBrokenPipe if stdout is abandoned, which the user wished and is no error.
int flush_stdout(int code) {
  std::cout.flush();
  if (std::cout.good()) return code;
  if (is_stdout_abandoned()) return kBrokenPipe;
  throw MachineError("stdout cannot be written: its disk is full, or it is closed");
}

/// Returns the command that an error message begins with: "lacuna train", or "lacuna" if there is no such verb.
std::string command_name(const std::vector<std::string>& words) {
  const std::vector<Verb> verbs = all_verbs();
  const bool is_verb = !words.empty() && std::any_of(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == words[0]; });
  return is_verb ? program().name + " " + words[0] : program().name;
}

/// Says that memory ran out, without taking any.
int report_out_of_memory() {
  constexpr std::string_view kText = "lacuna: error: out of memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
  return 1;
}

/// Runs the verb, prints its error, if any, and returns the exit code.
int run_and_report(const std::vector<std::string>& words) try {
  const auto report = [&](const std::string& message, int exit_code) {
    if (message.empty()) return exit_code;  // another process of the run tells what it was
    std::cerr << printable(log_prefix() + command_name(words) + ": error: " + message) << std::endl;
    log_error_to_file(message);
    return exit_code;
  };
  try {
    return flush_stdout(run_words(words));
  } catch (const Error& error) {
    return report(error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    return report((is_out_of_memory(error) ? "out of memory: " : "LibTorch: ") + std::string(error.what_without_backtrace()), 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::filesystem::filesystem_error& error) {
    const int code = error.code().value();
    return report(error.path1().string() + ": " + error.code().message(), is_users_mistake(code) ? 2 : 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
} catch (const std::bad_alloc&) {
  return report_out_of_memory();
}

/// Ends the program without running destructors: LibTorch unregisters its operators one by one, which takes as long as some verbs do.
/// Builds with sanitizers return instead, so that leaks are found.
int exit_at_once(int code) {
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
  lacuna::reopen_closed_streams();
  lacuna::ignore_write_signals();
  lacuna::report_cut_files();
  return lacuna::exit_at_once(lacuna::run_and_report({argv + 1, argv + argc}));
}

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/option_help.h"
#include "config/options.h"

/// Flags that several verbs have, each declared here once.
namespace lacuna::flags {

/// -m: a checkpoint or a run folder. `remark` follows its meaning.
CLI::Option* add_model(CLI::App& app, std::string& model, const std::string& remark = "");
/// -m, which may be given several times. `several` says what several models are for.
CLI::Option* add_models(CLI::App& app, std::vector<std::string>& models, const std::string& several);
/// --src and --tgt: two files, line by line.
struct Pair {
  CLI::Option *src, *tgt;
};
Pair add_pair(CLI::App& app, std::string& src, std::string& tgt);
/// The number, 0 or 1, that `links` count words from; none if it is to be found out.
CLI::Option* add_base(CLI::App& app, const std::string& flag, std::optional<int>& base, const std::string& links);
/// -o: a file, or - for standard output.
CLI::Option* add_output(CLI::App& app, std::string& output, const std::string& what);
/// --on-error, stop or skip: what to do with a line of input that cannot be taken. `fate` says what becomes of one that is passed over.
CLI::Option* add_on_error(CLI::App& app, OnBadLine& on_error,
                          const std::string& fate = "an empty line stands for it, {\"error\": ...} in JSON");
/// Throws PassedOverError, for its message and exit code, if lines were passed over.
void require_none_passed_over(int64_t bad_lines, int64_t lines);
/// --batch-tokens: tokens that are `treated` (scored, aligned, ...) at a time.
CLI::Option* add_batch_tokens(CLI::App& app, int64_t& tokens, const std::string& treated);

/// Throws UsageError if a checkpoint at `output` would replace what is none, a link to one (as run folders have), one that training goes on
/// from, or one of `inputs`.
void require_new_or_checkpoint(const std::string& output, const std::vector<std::string>& inputs);

/// Flags that stand for keys of one section of the configuration. Meaning and range are those of the key.
class KeyFlags {
 public:
  /// `keys`: the options of the section, by their whole names ("translate.beam_size").
  explicit KeyFlags(std::vector<OptionHelp> keys) : keys_(std::move(keys)) {}

  /// `flag`: its names, "-b,--beam-size". A verb that uses a model takes the model's value by default, others that of the key.
  /// `implied`: what the flag alone stands for; empty = it needs a value.
  CLI::Option* add(CLI::App& app, const std::string& flag, const std::string& key, bool is_of_model = true,
                   const std::string& implied = "");
  /// The flags that were given, as words of a command line: --translate.beam_size, 4.
  std::vector<std::string> overrides() const;

 private:
  struct Flag {
    CLI::Option* option;
    std::string key, implied;
  };
  std::vector<OptionHelp> keys_;
  std::vector<Flag> flags_;
};

}  // namespace lacuna::flags

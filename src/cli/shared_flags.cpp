#include "cli/shared_flags.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "config/run_files.h"

namespace lacuna::flags {
namespace {

/// The type that help shows for a key's value: "N (0-1024)", "{relu,gelu}".
std::string shown_type(const OptionHelp& key) {
  if (key.short_range.starts_with('{')) return "NAME:" + key.short_range;
  const std::string type = key.type == "integer" ? "N" : key.type == "number" ? "X" : "TEXT";
  return key.short_range.empty() ? type : type + ":" + key.short_range;
}

/// The key's meaning as a sentence begins.
std::string shown_meaning(const OptionHelp& key) {
  std::string meaning = key.meaning;
  if (!meaning.empty()) meaning[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(meaning[0])));
  return meaning;
}

}  // namespace

CLI::Option* add_model(CLI::App& app, std::string& model, const std::string& remark) {
  return app
      .add_option("-m,--model", model,
                  "Checkpoint or run folder; of a run, `averaged`, `best` or `last` is taken, whichever exists first" + remark)
      ->type_name("PATH");
}

CLI::Option* add_models(CLI::App& app, std::vector<std::string>& models, const std::string& several) {
  return app.add_option("-m,--model", models, "Checkpoint or run folder; several, each after its own -m" + several)
      ->type_name("PATH")
      ->required()
      ->allow_extra_args(false);
}

Pair add_pair(CLI::App& app, std::string& src, std::string& tgt) {
  return {app.add_option("--src", src, "Source text, one sentence a line, plain, gzip or zstd")->type_name("FILE"),
          app.add_option("--tgt", tgt, "Its translations, line by line, plain, gzip or zstd")->type_name("FILE")};
}

CLI::Option* add_base(CLI::App& app, const std::string& flag, std::optional<int>& base, const std::string& links) {
  return app.add_option(flag, base, "First number of a word in the " + links + ": 0, or 1 where they count from 1; 0 unless given")
      ->check(CLI::IsMember({0, 1}));
}

CLI::Option* add_output(CLI::App& app, std::string& output, const std::string& what) {
  return app.add_option("-o,--output", output, what + "; - is standard output")->type_name("FILE");
}

CLI::Option* add_batch_tokens(CLI::App& app, int64_t& tokens, const std::string& treated) {
  return app.add_option("--batch-tokens", tokens, "Tokens " + treated + " at a time")->check(whole_number_from(1));
}

void require_new_or_checkpoint(const std::string& output, const std::vector<std::string>& inputs) {
  const std::filesystem::path path(output), link = path.has_filename() ? path : path.parent_path();
  if (std::filesystem::is_symlink(link))
    throw UsageError("-o is " + output + ", which is a link, as a run folder has to its checkpoints; name another folder");
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, error)) throw UsageError("-o is " + output + ", which is read; name another folder");
  if (std::filesystem::exists(std::filesystem::path(output) / run_files::kTrainerJson, error))
    throw UsageError("-o is " + output + ", which is there and holds the state of a training run; name another folder");
  if (!is_checkpoint(output)) throw UsageError("-o is " + output + ", which is there and is no checkpoint; name a folder to be made");
}

CLI::Option* KeyFlags::add(CLI::App& app, const std::string& flag, const std::string& key, bool is_of_model, const std::string& implied) {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const OptionHelp& one) { return one.key == key; });
  if (found == keys_.end()) throw std::logic_error("there is no key " + key);
  CLI::Option* const option = app.add_option(flag)->description(shown_meaning(*found))->type_name(shown_type(*found));
  option->default_str(is_of_model ? "the model's " + key : found->default_value);
  if (!implied.empty()) option->expected(0, 1)->description(option->get_description() + "; the flag alone: " + implied);
  flags_.push_back({option, key, implied});
  return option;
}

std::vector<std::string> KeyFlags::overrides() const {
  std::vector<std::string> words;
  for (const auto& [option, key, implied] : flags_) {
    if (option->count() == 0) continue;
    const auto value = option->as<std::string>();  // an empty one, too; without one it is default_str
    words.insert(words.end(), {"--" + key, !implied.empty() && value == option->get_default_str() ? implied : value});
  }
  return words;
}

}  // namespace lacuna::flags

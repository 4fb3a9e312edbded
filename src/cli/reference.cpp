#include <iostream>

#include "attention/norms/norm.h"
#include "attention/registry.h"
#include "cli/command_line.h"
#include "cli/verb.h"
#include "config/options.h"

/// `lacuna reference` prints the reference pages of the manual. It is not listed in `lacuna --help`.
namespace lacuna {
namespace {

void print_table(const std::vector<OptionHelp>& options, const std::string& section) {
  std::cout << "| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n";
  for (const OptionHelp& option : options) {
    const std::string range = option.range.empty() ? option.type : option.type == "name" ? option.range : option.type + ", " + option.range;
    std::cout << "| `" << option.key.substr(section.size()) << "` | " << escaped_markdown(range) << " | "
              << (option.default_value.empty() ? "" : "`" + option.default_value + "`") << " | " << escaped_markdown(option.meaning)
              << " |\n";
  }
  std::cout << "\n";
}

/// The keys of one section, without those of the sections in it.
void print_section(const std::string& section, const std::string& heading, const std::string& introduction) {
  std::vector<OptionHelp> options;
  for (const OptionHelp& option : option_help<Options>())
    if (option.key.substr(0, option.key.rfind('.') + 1) == section) options.push_back(option);
  std::cout << "## " << heading << "\n\n" << introduction << "\n\n";
  print_table(options, section);
}

template <class Entries, class Remark>
void print_entries(const Entries& entries, Remark remark) {
  for (const auto* entry : entries) {
    std::cout << "### `" << entry->name << "`\n\n";
    if (const std::string text = remark(*entry); !text.empty()) std::cout << text << "\n\n";
    if (const std::vector<OptionHelp> options = entry->help(); !options.empty()) print_table(options, "");
    if (entry->help().empty()) std::cout << "No options.\n\n";
  }
}

std::string remark_on_type(const types::TypeEntry& type) {
  const std::string paper = type.info.paper, norm = type.info.default_norm;
  std::string text;
  if (paper.starts_with("arXiv:"))
    text = "Paper: [" + paper + "](https://arxiv.org/abs/" + paper.substr(6) + ").";
  else if (!paper.empty())
    text = "Paper: " + paper + ".";
  if (norm != "none") text += (text.empty() ? "" : " ") + ("Norm over the concatenated heads: `" + norm + "`, unless another is named.");
  return text;
}

void print_configuration() {
  std::cout << "# Configuration reference\n\n"
               "A configuration is YAML. Every key is a flag of `lacuna train` too: `--train.lr 1e-3`. A key that is left out has its "
               "default.\n\n";
  print_section("", "Top level", "Keys outside of any section.");
  print_section("data.", "`data`", "Corpora and vocabularies.");
  print_section("data.train[].", "Corpora: items of `data.train`, `data.valid`, `data.test`",
                "Each item is a map; one map stands for a list of one.");
  print_section("data.train[].min_score.", "`min_score` of a corpus", "Which rows of a `tsv` train, by a score.");
  print_section("model.", "`model`", "The Transformer.");
  print_section("train.", "`train`", "Training.");
  print_section("translate.", "`translate`", "Search. `lacuna translate` takes these from the model's configuration.");
  print_section("train.guided_alignment.", "`train.guided_alignment`",
                "Training of a head of cross attention by links between words, where corpora of `data.train` have `links`.");
  print_section("translate.guard_limits.", "`translate.guard_limits`", "Limits of `translate.guard`; tokens are pieces, eos counted.");
  std::cout
      << "## `model.attention`\n\n"
         "One choice for all attention, or one for each of `default`, `encoder_self`, `decoder_self` and `cross`, and there one for each "
         "of `default`, `layers.0`, `layers.1`, ... A choice is a type's name, or a map of `type`, the type's options, `pattern` and "
         "`norm`.\n\n## Attention types\n\nHow a row of scores becomes a row of weights.\n\n";
  print_entries(types::all_types(), remark_on_type);
  const LayeredTypeHelp layered = layered_type_help();
  std::cout << "### `" << layered.name << "`\n\nPaper: " << layered.paper << ". " << layered.remark << ".\n\n";
  print_table(layered.options, "");
  const auto nothing = [](const auto& /*entry*/) { return std::string(); };
  std::cout << "## Attention patterns\n\nWhich keys a query may see: `pattern: NAME` or `pattern: {type: NAME, ...}` for all heads, "
               "`pattern: {heads: [...]}` with one for each.\n\n";
  print_entries(patterns::all_patterns(), nothing);
  std::cout << "## Attention norms\n\nNorms over the concatenated heads: `norm: NAME` or `norm: {type: NAME, ...}`.\n\n";
  print_entries(norms::all_norms(), nothing);
}

void print_commands() {
  std::cout << "# Command reference\n\n`lacuna VERB [FLAG ...]`; `lacuna VERB --help` prints the same.\n\n| Verb | What it does |\n| --- | "
               "--- |\n";
  for (const Verb& verb : all_verbs())
    if (!verb.is_hidden()) std::cout << "| `" << verb.name << "` | " << escaped_markdown(verb.summary) << " |\n";
  std::cout << "\n";
  for (const Verb& verb : all_verbs())
    if (!verb.is_hidden()) verb.run({kMarkdownHelp});
}

int run_reference(const std::vector<std::string>& arguments) {
  CommandLine app("Prints a reference page of the manual, in Markdown.", "lacuna reference");
  std::string page;
  app.add_option("page", page, "configuration or commands")->required()->check(CLI::IsMember({"configuration", "commands"}));
  if (!app.read(arguments)) return 0;
  page == "commands" ? print_commands() : print_configuration();
  return 0;
}

}  // namespace

Verb reference_verb() {
  return {"reference", "", run_reference};
}

}  // namespace lacuna

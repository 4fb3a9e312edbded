#pragma once

#include <string>
#include <vector>

#include "config/config_node.h"
#include "config/options.h"

namespace lacuna {

/// The sources of a configuration on the command line: later files override earlier ones, and overrides all of them.
struct ConfigSources {
  std::vector<std::string> files;
  std::vector<std::string> overrides;     ///< words of the command line: `--model.attention.cross.k`, `16`, `--train.lr=1e-3`
  std::vector<ConfigNode> overlays = {};  ///< trees that override the files and are overridden by `overrides`
};

/// Reads and merges all sources into one tree: follows `extends`, renames aliases, substitutes ${VARIABLES}. Paths in a configuration are
/// relative to the current folder, except for `extends`, which is relative to its file.
ConfigNode load_config_tree(const ConfigSources& sources);

/// Returns the tree of one file, merged over the files that it extends.
ConfigNode read_config_file(const std::string& file);

/// Merges `over` onto `under`, as a later -c onto an earlier one: maps merge key by key, everything else is replaced; an empty section
/// changes nothing. `path` is the dotted key of both, empty for whole trees.
///
/// `model.preset` replaces the sizes in `under`. Within `model.attention` a map that names a type replaces the choice in `under`, but
/// merges with options that have no type; a map of options alone changes the choice in `under`, or all of its choices by site or layer.
ConfigNode merged(const ConfigNode& under, const ConfigNode& over, const std::string& path = "");

/// Renames the keys of other toolkits (Marian, OpenNMT, Eole, Joey NMT, fairseq, Sockeye), kebab and snake case alike, to Lacuna's, with
/// one warning each. Throws ConfigError if a key and another spelling of it are both there, or where a key of theirs means something else.
void rename_known_aliases(ConfigNode& root);

/// Replaces settings of older versions that no longer exist, in a configuration that a checkpoint or run folder keeps: translating in
/// bf16x3 becomes fp32, with a warning. In a user's own configuration they are errors (rename_known_aliases).
void replace_removed_settings(ConfigNode& root);

/// Returns the typed options of a tree, checked against each other (n_best <= beam_size, ...). Throws ConfigError.
Options options_from(const ConfigNode& tree);

/// Applies overrides to the options of a checkpoint. Throws ConfigError for any but those of `translate` and `model.attention`.
Options with_overrides(const Options& options, const std::vector<std::string>& overrides);

/// Returns the resolved configuration: every key, as YAML that reads back as the same options.
std::string to_yaml(const Options& options);
/// Reads what `to_yaml` wrote, in this version or an older one.
Options options_from_yaml(const std::string& yaml, const std::string& place);

/// Throws ConfigError for combinations that have no meaning. The message begins with the place of the key in `tree`, from which the options
/// were read. Does not check what this machine can do: the configuration may come with a checkpoint from another machine.
void validate(const Options& options, const ConfigNode& tree);
/// Throws ConfigError, with the place, for obvious mistakes: a run folder named ~, vocabulary files that would not be read. Not for the
/// configurations of checkpoints, which may contain these.
void refuse_oversights(const Options& options, const ConfigNode& tree);
/// Throws ConfigError, which begins with `key`, unless `device` is cpu, cuda or cuda:N.
void validate_device(const std::string& device, const std::string& key = "device");
/// Throws ConfigError, which begins with `key`, for symbols that cannot be pieces of a SentencePiece model.
void validate_symbols(const std::vector<std::string>& symbols, const std::string& key);

/// Every key with its default, range and meaning, for `lacuna train --help-options`; attention_help() lists the keys of model.attention.
std::string options_help();
/// The keys of section `translate` alone, as options_help() lists them.
std::string search_options_help();

}  // namespace lacuna

#pragma once

#include <string>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// What a command line says about a configuration: files, later over earlier, then overrides over all of them.
struct ConfigSources {
  std::vector<std::string> files;
  std::vector<std::string> overrides;     ///< `--model.attention.cross.k`, `16`, `--train.lr=1e-3`: words as they stand on the command line
  std::vector<ConfigNode> overlays = {};  ///< trees that come over the files and under the overrides
};

/// The one tree of all sources: `extends` followed, maps merged, aliases renamed, ${VARIABLES} filled in. Paths in a configuration are
/// relative to the current folder, but for `extends`, which is relative to the file that says it.
ConfigNode load_config_tree(const ConfigSources& sources);

/// The tree of one file over those that it extends.
ConfigNode read_config_file(const std::string& file);
/// `over` laid over `under` as one -c over another: maps merge key by key, everything else replaces, and so does an attention choice of
/// another type.
ConfigNode merge_trees(const ConfigNode& under, const ConfigNode& over);

/// Typed options of a tree, checked against each other (n_best <= beam_size, num_heads divides d_model, ...). Throws ConfigError.
Options options_from(const ConfigNode& tree);
Options load_options(const ConfigSources& sources);

/// Applies overrides to the options of a checkpoint. Throws ConfigError for any but those of `translate` and `model.attention`.
Options with_overrides(const Options& options, const std::vector<std::string>& overrides);

/// The resolved configuration: every key, as YAML that reads back as the same options.
std::string to_yaml(const Options& options);
Options options_from_yaml(const std::string& yaml, const std::string& place);

/// Throws ConfigError for combinations that have no meaning: "file:line: ..." or "command line (--key): ...", where `tree`, which the
/// options were read from, has the key. What this machine lacks is no matter of a configuration, which may be a checkpoint's from another
/// one.
void validate(const Options& options, const ConfigNode& tree);
/// Throws ConfigError, with the place too, for what a user surely does not mean: a run folder that is named ~, files of vocabularies that
/// would not be read. A checkpoint's configuration may hold such.
void refuse_oversights(const Options& options, const ConfigNode& tree);
/// Throws ConfigError, which begins with `key`, unless `device` is cpu, cuda or cuda:N.
void validate_device(const std::string& device, const std::string& key = "device");
/// Throws ConfigError, which begins with `key`, for symbols that cannot be pieces of a SentencePiece model.
void validate_symbols(const std::vector<std::string>& symbols, const std::string& key);

/// Every key with its default, range and meaning: `lacuna train --help-options`. What stands under model.attention, attention_help() says.
std::string options_help();
/// The same of `translate` alone.
std::string search_options_help();

}  // namespace lacuna

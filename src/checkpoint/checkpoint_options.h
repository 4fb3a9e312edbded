#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/attention_fit.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"

namespace lacuna {

/// The options that load_model() would give, without the weights: what is wrong with the last of several models is known before work on
/// the first begins. Throws as load_model() does, but for what only the weights can tell.
inline Options options_of_checkpoint(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string folder = resolve_checkpoint(path);
  read_checkpoint_info(folder);  // for its errors
  const std::string config = folder + "/" + run_files::kConfig;
  const Options trained = options_from_yaml(read_file(config), config);
  Options options = overrides.empty() ? trained : with_overrides(trained, overrides);
  require_same_units(trained.model, options.model, folder);
  return options;
}

}  // namespace lacuna

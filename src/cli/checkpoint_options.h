#pragma once

#include <string>
#include <vector>

#include "attention/attention.h"
#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"

namespace lacuna {

/// The options that load_model() would give, without the weights: what is wrong with the last of several models is known before work on
/// the first begins. Throws as load_model() does, but for what only the weights can tell.
inline Options options_of_checkpoint(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string folder = resolve_checkpoint(path);
  read_checkpoint_info(folder);  // for its errors, as the plan below
  Options options = options_from_yaml(read_file(folder + "/config.yaml"), folder + "/config.yaml");
  if (!overrides.empty()) options = with_overrides(options, overrides);
  resolve_attention(options.model);
  return options;
}

}  // namespace lacuna

#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ablation/variant.h"
#include "config/configuration.h"
#include "config/load.h"

namespace lacuna {

inline constexpr int64_t kMostThreads = 1024;  // as of the key `threads`

/// Flags that several verbs share.
struct CommonFlags {
  std::vector<std::string> configs;  ///< -c, later over earlier
  int64_t threads = -1;              ///< --threads; -1 = not given
  std::string device;                ///< --device; empty = not given
  bool quiet = false;
  std::string log_level = "info";
  bool dump_config = false;
  bool help_options = false;
  bool needs_config = true;  ///< false: without -c, every key has its default

  /// Declares -c, --dump-config and --help-options, and lets `--section.key value` through as overrides.
  void declare_configuration(CLI::App& app);
  /// Declares --threads, --quiet and --log-level.
  void declare_threads_and_log(CLI::App& app);
  /// Those, and --device.
  void declare_runtime(CLI::App& app);
  /// The configuration of -c, overrides and the flags above, with log level, device and threads put to use. None if --help-options or
  /// --dump-config was given: then it has been printed, and the verb is to return 0. Throws, before anything is written, for whatever is
  /// wrong in a configuration by itself. `variants` gets what the key of this name defines; where it is null, the key is an error.
  std::optional<Configuration> configuration(const CLI::App& app, std::vector<Variant>* variants = nullptr) const;
  /// Where that configuration comes from. Throws UsageError without -c where it is needed.
  ConfigSources sources(const CLI::App& app) const;
  /// For verbs without a configuration: the device, which is there, with the threads put to use. Throws as require_device() does.
  std::string prepared_device() const;
  /// Sets the log's level.
  void apply_log_level() const;

 private:
  void refuse_variants(const ConfigNode& tree) const;
};

/// The words that a verb's flags left over: keys of the configuration as flags, with their values. Throws UsageError for a flag that is no
/// key: no section's, which has a dot, and none that stands alone.
std::vector<std::string> overrides_of(const CLI::App& app);
/// The same for `verb`, which searches for nothing: UsageError for a key of search, too.
std::vector<std::string> overrides_without_search(const CLI::App& app, const std::string& verb);

/// Sets the number of threads, of LibTorch and of thread_count(); 0 or less = num_cores().
void use_threads(int64_t threads);

/// Throws ConfigError for a device that has no meaning, or that this program was built without; MachineError for one that is not there, and
/// for a GPU too old for the kernels.
void require_device(const std::string& device);

}  // namespace lacuna

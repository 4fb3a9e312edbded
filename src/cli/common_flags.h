#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ablation/variant.h"
#include "config/load.h"
#include "config/rules.h"

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
  /// Declares --threads, --quiet, --log-level and --device.
  void declare_runtime(CLI::App& app);
  /// Reads the configuration of -c, overrides and the flags above, and applies log level, device and threads. None if --help-options or
  /// --dump-config was given: the answer has been printed, and the verb returns 0. Throws, before anything is written, for whatever is
  /// wrong in a configuration by itself. `variants` gets what the section of this name defines; if it is null, the section is an error.
  std::optional<Configuration> configuration(const CLI::App& app, std::vector<Variant>* variants = nullptr) const;
  /// Returns the files and overrides of the configuration. Throws UsageError if -c is needed and missing.
  ConfigSources sources(const CLI::App& app) const;
  /// Returns the device, for verbs without a configuration, and applies the threads. Throws what require_device() throws.
  std::string prepared_device() const;
  /// Sets the log's level.
  void apply_log_level() const;

 private:
  void refuse_variants(const ConfigNode& tree) const;
};

/// Returns the words that the verb's flags left over: keys as flags, with their values. Throws UsageError for a flag that is no key.
std::vector<std::string> overrides_of(const CLI::App& app);
/// Returns what overrides_of() returns, for a verb that does not search. Throws UsageError for a key of search, too.
std::vector<std::string> overrides_without_search(const CLI::App& app, const std::string& verb);

/// Throws UsageError if a launcher (torchrun, srun, mpirun) has started several processes: each would do the whole work.
void require_single_process();

/// Sets the number of threads, of LibTorch and of thread_count(); 0 or less = num_cores().
void use_threads(int64_t threads);

/// Throws ConfigError for a name that is no device, and for a device that this program was built without; MachineError for a device that
/// this machine lacks, and for a GPU too old for the kernels.
void require_device(const std::string& device);

}  // namespace lacuna

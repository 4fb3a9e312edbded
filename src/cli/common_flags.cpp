#include "cli/common_flags.h"

#include <ATen/Parallel.h>

#include <iostream>

#include "attention/attention.h"
#include "attention/registry.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/resources.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "config/read_options.h"
#include "kernels/parallel.h"
#include "ranks/place.h"

#ifdef LACUNA_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

namespace lacuna {

void CommonFlags::declare_configuration(CLI::App& app) {
  app.add_option("-c,--config", configs, "Configuration file; several, each after its own -c: later ones over earlier ones")
      ->allow_extra_args(false);
  app.add_flag("--dump-config", dump_config, "Print the resolved configuration and end");
  app.add_flag("--help-options", help_options, "Print every configuration key with its default, range and meaning, and end");
  app.footer("Every key of the configuration is a flag too: --train.lr 1e-3, --model.attention.cross.k 16");
  app.allow_extras();
}

void CommonFlags::declare_threads_and_log(CLI::App& app) {
  app.add_option("--threads", threads, "Threads of the CPU; 0 = OMP_NUM_THREADS, or all cores that the process may use")
      ->check(whole_number_from(0, kMostThreads))
      ->default_str("threads of the configuration, or 0");
  app.add_flag("--quiet", quiet, "Print warnings only");
  app.add_option("--log-level", log_level, "info, warning, error or off")->check(CLI::IsMember({"info", "warning", "error", "off"}));
}

void CommonFlags::declare_runtime(CLI::App& app) {
  declare_threads_and_log(app);
  app.add_option("--device", device, "cpu, cuda or cuda:N")->check([](const std::string& text) {
    return std::string(text.empty() ? "is empty; expected cpu, cuda or cuda:N" : "");
  });
}

ConfigSources CommonFlags::sources(const CLI::App& app) const {
  if (needs_config && configs.empty()) {
    for (const std::string& word : app.remaining())
      if (word.ends_with(".yaml") || word.ends_with(".yml")) throw UsageError("-c FILE is missing; write -c " + shell_word(word));
    throw UsageError("-c FILE is missing: a configuration, such as configs/bundled/base.yaml");
  }
  ConfigSources sources{configs, overrides_of(app)};
  if (threads >= 0) sources.overrides.insert(sources.overrides.end(), {"--threads", std::to_string(threads)});
  if (!device.empty()) sources.overrides.insert(sources.overrides.end(), {"--device", device});
  return sources;
}

/// Throws ConfigError for the key by which `lacuna ablate` knows what to compare, with the command that takes this configuration.
void CommonFlags::refuse_variants(const ConfigNode& tree) const {
  const ConfigNode* const section = tree.find(kVariantsKey);
  if (section == nullptr) return;
  std::string command = "lacuna ablate";
  for (const std::string& file : configs) command.append(" -c ").append(shell_word(file));
  section->fail("it says what `lacuna ablate` compares, which trains each: " + command +
                " (one of them alone: --attention NAME). Take the key out where only one model is meant");
}

std::optional<Configuration> CommonFlags::configuration(const CLI::App& app, std::vector<Variant>* variants) const {
  if (help_options) {
    std::cout << options_help() << attention_help();
    return {};
  }
  apply_log_level();
  ConfigNode tree = load_config_tree(sources(app));
  if (variants != nullptr)
    *variants = take_variants(tree);
  else
    refuse_variants(tree);
  Options options = options_from(tree);
  refuse_oversights(options, tree);
  resolve_attention(options.model);  // for its errors
  if (dump_config) {
    std::cout << to_yaml(options);
    return {};
  }
  require_device(options.device);
  use_threads(options.threads);
  return Configuration{std::move(options), Rules(std::move(tree))};
}

std::string CommonFlags::prepared_device() const {
  std::string chosen = device.empty() ? "cpu" : device;
  require_device(chosen);
  use_threads(threads);
  return chosen;
}

void CommonFlags::apply_log_level() const {
  const std::vector<std::pair<std::string, LogLevel>> levels = {
      {"info", LogLevel::kInfo}, {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}, {"off", LogLevel::kOff}};
  for (const auto& [name, level] : levels)
    if (name == (quiet ? "warning" : log_level)) set_log_level(level);
}

namespace {

/// Returns the key that a flag without a section may mean: train.max_epochs for --max-epochs; only keys of search without -c. Empty = none.
std::string key_meant_by(const CLI::App& app, std::string flag) {
  const bool reads_configuration = app.get_option_no_throw("--config") != nullptr;
  std::replace(flag.begin(), flag.end(), '-', '_');
  const ConfigNode all = write_options(Options());
  for (const auto& [section, keys] : all.entries())
    if (keys.is_map() && (reads_configuration || section == "translate") && keys.find(flag.substr(2)) != nullptr)
      return section + "." + flag.substr(2);
  return "";
}

}  // namespace

std::vector<std::string> overrides_of(const CLI::App& app) {
  const std::vector<std::string> keys = keys_of(Options());
  for (const std::string& word : app.remaining()) {
    const std::string flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--") || flag.find('.') != std::string::npos) continue;
    if (std::find(keys.begin(), keys.end(), flag.substr(2)) != keys.end()) continue;
    const std::string key = key_meant_by(app, flag);
    throw UsageError(key.empty() ? unknown_flag_message(app, flag) : flag + " is not a flag; the key is --" + key);
  }
  return app.remaining();
}

std::vector<std::string> overrides_without_search(const CLI::App& app, const std::string& verb) {
  std::vector<std::string> words = overrides_of(app);
  for (const std::string& word : words)
    if (word.starts_with("--translate")) throw UsageError(word + " has no meaning for " + verb + ", which searches for nothing");
  return words;
}

void require_single_process() {
  const RankPlace place = place_from_environment();
  if (place.is_alone()) return;
  throw UsageError(
      fmt::format("the environment says ({}) that this is process {} of {}: a launcher (torchrun, srun, mpirun, lacuna launch) "
                  "has started several, and each would do the whole work. Start lacuna without the launcher, or with one "
                  "task, or unset {}",
                  place.told_by, place.rank, place.size, place.told_by));
}

void use_threads(int64_t threads) {
  const int number = threads > 0 ? static_cast<int>(threads) : num_cores();
  at::set_num_threads(number);
  set_thread_count(number);
  settle_vector_functions();
}

#ifdef LACUNA_CUDA
namespace {

/// Throws MachineError unless the kernels run on this GPU.
void require_gpu(const std::string& device) {
  constexpr int kOldest = 8;  // of compute capability, as cmake/Cuda.cmake compiles them
  const int index = device == "cuda" ? 0 : std::stoi(device.substr(5)), count = at::cuda::device_count();
  if (count == 0)
    throw MachineError("device is \"" + device +
                       "\"; no CUDA device is seen here. See whether nvidia-smi lists one (a container needs --gpus all) and what "
                       "CUDA_VISIBLE_DEVICES says, or use --device cpu");
  if (index >= count)
    throw MachineError(
        fmt::format("device is \"{}\"; expected cuda:0 to cuda:{}, which are the CUDA devices seen here", device, count - 1));
  const cudaDeviceProp& gpu = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
  if (gpu.major < kOldest)
    throw MachineError(
        fmt::format("device is \"{}\", which is {} of compute capability {}.{}; expected {}.0 or later (A100, RTX 30 and "
                    "what came after), or --device cpu",
                    device, gpu.name, gpu.major, gpu.minor, kOldest));
}

}  // namespace
#endif

void require_device(const std::string& device) {
  validate_device(device);
  if (device == "cpu") return;
#ifdef LACUNA_CUDA
  require_gpu(device);
#else
  throw ConfigError("device is \"" + device + "\"; this program was built for the CPU only: build it with the preset cuda");
#endif
}

}  // namespace lacuna

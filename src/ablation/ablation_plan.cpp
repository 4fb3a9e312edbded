#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "ablation/ablation.h"
#include "ablation/run_result.h"
#include "attention/attention.h"
#include "attention/registry.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/config_node.h"
#include "config/read_options.h"
#include "config/run_files.h"
#include "config/yaml.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "train/resume.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Keys that decide where a run ends, and which of its checkpoints is the best: a trained run cannot change either afterwards.
constexpr const char* kDecideOnTheEnd[] = {"train.min_improvement", "train.min_steps",       "train.patience",
                                           "train.save_every",      "train.valid_beam_size", "train.valid_every"};

/// Hashes of what files hold, each read once for a whole plan: training texts may have gigabytes.
class FileHashes {
 public:
  /// Returns the hash of a file; empty if it is none, which is an error before training.
  const std::string& of(const std::string& file) {
    const auto [entry, is_new] = hashes_.try_emplace(file);
    if (is_new && fs::is_regular_file(file)) entry->second = hash_of_files({file});
    return entry->second;
  }

 private:
  std::map<std::string, std::string> hashes_;
};

/// Reads the files of `sources` once, so that their warnings are logged once.
ConfigSources with_files_read(const ConfigSources& sources) {
  return {.files = {}, .overrides = sources.overrides, .overlays = {load_config_tree({sources.files, {}})}};
}

/// Returns the options of the configuration with one more tree over its files.
Options options_with(ConfigSources sources, const ConfigNode& overlay) {
  sources.overlays.push_back(overlay);
  ConfigNode tree = load_config_tree(sources);
  tree.erase(kVariantsKey);
  Options options = options_from(tree);
  resolve_attention(options.model);  // for its errors
  return options;
}

Options options_of(const ConfigSources& sources, const Variant& variant) {
  try {
    return options_with(sources, variant.overlay);
  } catch (const ConfigError& error) {
    throw ConfigError("variant " + variant.name + ": " + error.what());
  }
}

/// Returns the variants of the configuration and of the file of variants.
std::vector<Variant> defined_variants(const AblationRequest& request) {
  ConfigNode tree = load_config_tree(request.sources);
  std::vector<Variant> variants = take_variants(tree);
  if (request.variants_file.empty()) return variants;
  ConfigNode more = read_yaml_file(request.variants_file);
  more.set_path(kVariantsKey);
  for (Variant& variant : read_variants(more)) {
    for (const Variant& other : variants)
      if (other.name == variant.name)
        more.find(variant.name)->fail("a variant of this name is in the configuration too; rename one of them");
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::vector<Variant> wanted_variants(const AblationRequest& request, const std::vector<Variant>& defined) {
  std::vector<Variant> wanted =
      request.attention.empty() ? defined : parse_variants(request.attention, "--attention", defined, types::known_types());
  if (wanted.empty())
    throw UsageError(
        "there is nothing to compare; give --attention softmax,topk,rela or --variants FILE, or add `variants` to the configuration");
  return wanted;
}

/// Returns names in the order of the table: variants of files, variants that have rows, variants that the command line adds.
std::vector<std::string> table_order(const std::vector<Variant>& defined, const ResultsFile& results, const std::vector<Variant>& wanted) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Variant& variant : defined) add(variant.name);
  for (const RunResult& row : results.rows()) add(row.variant);
  for (const Variant& variant : wanted) add(variant.name);
  return names;
}

/// Returns, for each variant with a row of these shared options, the options of its last row.
TableScope scope_of(const ResultsFile& results, const std::string& shared_fingerprint) {
  TableScope scope;
  for (const RunResult& row : results.rows())
    if (row.shared_fingerprint == shared_fingerprint) scope.fingerprints[row.variant] = row.fingerprint;
  return scope;
}

/// Returns the variant that others are compared with: the first of the table that is wanted or has run.
std::string baseline_of(const AblationPlan& plan, const ResultsFile& results, const std::vector<Variant>& wanted) {
  for (const std::string& name : plan.variants) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(), [&](const Variant& variant) { return variant.name == name; });
    const bool has_run = std::any_of(results.rows().begin(), results.rows().end(),
                                     [&](const RunResult& row) { return row.variant == name && row.is_ended() && plan.scope.holds(row); });
    if (is_wanted || has_run) return name;
  }
  return "";
}

CorpusOptions choose_test_set(const DataOptions& data) {
  refuse_stream(data, "lacuna ablate");
  if (!data.test.empty()) return data.test.front();
  if (data.valid.empty())
    throw ConfigError(
        fmt::format("data.test and data.valid are empty; expected a set to translate and score: data.test: {}", CorpusOptions::kForm));
  log_warning("data.test is empty: the validation set is translated and scored");
  return data.valid.front();
}

/// Returns the files that a run's result depends on: training corpora, test set, and first validation set.
std::vector<std::string> deciding_files(const DataOptions& data, const CorpusOptions& test_set) {
  std::vector<CorpusOptions> corpora = data.train;
  corpora.push_back(test_set);
  if (!data.valid.empty()) corpora.push_back(data.valid.front());
  std::vector<std::string> files;
  for (const CorpusOptions& corpus : corpora)
    for (const auto& [file, what] : corpus.files()) files.push_back(file);
  return files;
}

/// Hashes what a run's result depends on, but for the seed: its options, without those that change no number, and its texts.
std::string fingerprint_of(Options options, const CorpusOptions& test_set, FileHashes& hashes) {
  options.run = options.sacrebleu = options.data.cache = "";
  options.seed = options.threads = 0;
  options.data.test.clear();  // all but `test_set` are not scored
  options.train.overwrite = false;
  options.train.log_every = options.train.num_samples = 0;
  if (options.device.starts_with("cuda")) options.device = "cuda";  // any of them
  ContentHash hash;
  hash.add(to_yaml(options));
  hash.add(name_of(test_set) + "\n" + write_options(test_set).to_yaml());
  for (const std::string& file : deciding_files(options.data, test_set)) hash.add(hashes.of(file));
  return hash.text();
}

/// Hashes what the rows of one table have in common: everything but attention.
std::string shared_fingerprint_of(Options shared, const CorpusOptions& test_set, FileHashes& hashes) {
  shared.model.attention = ConfigNode();
  return fingerprint_of(std::move(shared), test_set, hashes);
}

/// A limit to the length of a run; 0 = none.
struct LengthLimit {
  const char* key;
  std::optional<double> trained;  ///< how far the run has come
  double had, now;

  /// A run that has ended at its limit may be a little past it: hours end with an update.
  bool is_passed() const { return now > 0 && trained && *trained > now && (had == 0 || now < had); }
};

[[noreturn]] void refuse_trained_run(const std::string& run, const std::string& how, const std::string& values) {
  throw ConfigError(run + " holds a run that was trained " + how + ": " + values +
                    "; remove that folder to train it anew, or give -o another folder");
}

void require_no_longer_run(const std::string& run, const TrainOptions& had, const TrainOptions& now) {
  RunResult trained;
  read_training(run, trained);
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  for (const LengthLimit& limit : {LengthLimit{"train.max_steps", trained.updates, number(had.max_steps), number(now.max_steps)},
                                   LengthLimit{"train.max_epochs", trained.epochs, number(had.max_epochs), number(now.max_epochs)},
                                   LengthLimit{"train.max_hours", trained.hours, had.max_hours, now.max_hours}})
    if (limit.is_passed())
      refuse_trained_run(run, "for longer", fmt::format("{} is {:.8g} now, and it has {:.8g}", limit.key, limit.now, *limit.trained));
}

void require_same_end(const std::string& run, const Options& had, const Options& now) {
  for (const ConfigDifference& difference : differences(write_options(had), write_options(now)))
    if (std::ranges::find(kDecideOnTheEnd, difference.key) != std::end(kDecideOnTheEnd))
      refuse_trained_run(run, "otherwise", difference.key + " is " + difference.second + " now, and it has " + difference.first);
}

/// Throws ConfigError if the run in the folder was trained for longer or ends by another rule: it would resume, among runs of the new one.
void require_run_of_same_end(const Options& options) {
  const fs::path config = fs::path(options.run) / run_files::kLast / run_files::kConfig;
  if (replaces_run(options) || !fs::exists(config)) return;  // it begins anew, or nothing is trained
  const Options had = options_from_yaml(read_file(config), config.string());
  Options now = options;
  if (!now.train.patience.value) now.train.patience = had.train.patience;
  require_no_longer_run(now.run, had.train, now.train);
  require_same_end(now.run, had, now);
}

PlannedRun plan_run(const AblationPlan& plan, const Variant& variant, int64_t seed, const std::string& baseline, Options options,
                    FileHashes& hashes) {
  options.run = (fs::path(plan.folder) / variant.name / ("seed_" + std::to_string(seed))).string();
  options.seed = seed;
  if (options.data.cache.empty()) options.data.cache = (fs::path(plan.folder) / run_files::kCache).string();
  options.data.test.clear();  // it is translated when training has ended, and timed
  if (options.translate.joiner != plan.shared.translate.joiner)
    throw ConfigError("variant " + variant.name +
                      ": translate.joiner belongs to the whole ablation: all variants are scored against the "
                      "same references; say it beside `variants`");
  require_run_of_same_end(options);
  const std::string against = !variant.against.empty() ? variant.against : variant.name == baseline ? "" : baseline;
  const std::string fingerprint = fingerprint_of(options, plan.test_set, hashes);
  return {.variant = variant.name, .seed = seed, .against = against, .options = std::move(options), .fingerprint = fingerprint};
}

std::string chosen_folder(const AblationRequest& request, const Options& shared) {
  if (request.folder.empty() && shared.run.empty()) throw UsageError("-o FOLDER is missing: where everything is written");
  std::string folder = request.folder.empty() ? shared.run + "_ablation" : request.folder;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace

std::string results_file(const std::string& folder) {
  return (fs::path(folder) / "results.jsonl").string();
}

bool is_to_be_made(const PlannedRun& run, const ResultsFile& results) {
  const RunResult* row = results.find(run.variant, run.seed);
  return row == nullptr || !row->is_ended() || row->fingerprint != run.fingerprint;
}

Options shared_options(const ConfigSources& sources) {
  return options_with(sources, ConfigNode::map({}));
}

AblationPlan plan_ablation(const AblationRequest& asked) {
  AblationRequest request = asked;
  request.sources = with_files_read(asked.sources);
  const std::vector<Variant> defined = defined_variants(request), wanted = wanted_variants(request, defined);
  AblationPlan plan;
  plan.shared = shared_options(request.sources);
  plan.rules = Rules(load_config_tree(request.sources));
  plan.folder = chosen_folder(request, plan.shared);
  plan.test_set = choose_test_set(plan.shared.data);
  const ResultsFile results(results_file(plan.folder));
  plan.variants = table_order(defined, results, wanted);
  FileHashes hashes;
  plan.shared_fingerprint = shared_fingerprint_of(plan.shared, plan.test_set, hashes);
  plan.scope = scope_of(results, plan.shared_fingerprint);
  const std::string baseline = baseline_of(plan, results, wanted);
  const auto seeds_of = [&](const Variant& variant) {
    if (!request.seeds.empty()) return request.seeds;
    return variant.seeds.empty() ? std::vector<int64_t>{plan.shared.seed} : variant.seeds;
  };
  size_t rounds = 0;
  for (const Variant& variant : wanted) rounds = std::max(rounds, seeds_of(variant).size());
  for (size_t round = 0; round < rounds; ++round)
    for (const Variant& variant : wanted)
      if (const std::vector<int64_t> seeds = seeds_of(variant); round < seeds.size())
        plan.runs.push_back(plan_run(plan, variant, seeds[round], baseline, options_of(request.sources, variant), hashes));
  for (const PlannedRun& run : plan.runs) plan.scope.fingerprints[run.variant] = run.fingerprint;
  return plan;
}

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// A run's difference to the run it is compared with, by a paired bootstrap over the sentences of the test set.
struct Comparison {
  std::string against;    ///< the other run's variant
  int64_t seed = 0;       ///< and seed
  double difference = 0;  ///< in BLEU
  double p_value = 1;
};

/// The result of one run of an ablation: a row of results.jsonl.
struct RunResult {
  std::string variant = {};
  int64_t seed = 1;
  std::string error = {};               ///< why it failed; empty = it ended well
  std::string fingerprint = {};         ///< of what the result depends on, but for the seed: options, and the files that are scored
  std::string shared_fingerprint = {};  ///< of what all variants of the command had in common; empty in rows of older versions

  std::string test_set = {}, signature = {};  ///< what was scored, and sacreBLEU's signature of BLEU
  std::optional<double> bleu = {}, chrf = {};
  std::optional<double> bleu_interval = {};    ///< 95 % of the bootstrap's resamples lie within BLEU ± this
  std::optional<double> valid_loss = {};       ///< of the translating weights, nats per target token
  std::optional<double> train_speed = {};      ///< target tokens per second, without validating and saving
  std::optional<double> translate_speed = {};  ///< output tokens per second, on the test set
  std::optional<double> parameters = {}, peak_mebibytes = {};
  std::optional<double> epochs = {}, updates = {}, hours = {};
  std::map<std::string, double> sparsity = {};  ///< share of weights that are 0, by site, mean over layers
  std::optional<Comparison> comparison = {};

  bool is_ended() const { return error.empty(); }
};

/// The rows of an ablation's folder, kept in its `results.jsonl`: rewritten as a whole with each one, so that it is never half a line.
class ResultsFile {
 public:
  /// Reads the file if it is there. Throws DataError (file:line) if a line is not a row.
  explicit ResultsFile(std::filesystem::path file);

  /// Adds a row, or replaces that of the same variant and seed, and writes the file.
  void put(const RunResult& result);
  const RunResult* find(const std::string& variant, int64_t seed) const;
  /// Returns the rows in the order in which they were first added.
  const std::vector<RunResult>& rows() const { return rows_; }

 private:
  std::filesystem::path file_;
  std::vector<RunResult> rows_;
};

nlohmann::ordered_json to_json(const RunResult& result);

/// Reads facts about a run's training from its folder: speed (the median over the log's lines), peak memory, sparsity at the last
/// validation, epochs, updates and hours. Facts that the files lack stay unknown.
void read_training(const std::filesystem::path& run, RunResult& result);

/// Returns the number of weights of a checkpoint. Throws what read_safetensors throws.
int64_t count_parameters(const std::filesystem::path& checkpoint);

/// Returns the mean loss in nats per target token, from what `lacuna score --tokens` prints: a line a sentence, its log-probability, a tab,
/// and those of its tokens. Throws MachineError for anything else.
double nll_per_token(const std::string& scores);

/// Returns the error message that a verb ended with: the text after `lacuna VERB: error: `. Empty if there is none.
std::string error_message(const std::string& last_errors);

}  // namespace lacuna

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/training_log.h"
#include "cli/validation.h"
#include "config/options.h"
#include "data/batch.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "metrics/sacrebleu.h"
#include "train/checkpoint_keeper.h"
#include "train/resume.h"
#include "train/run_lock.h"
#include "train/trainer.h"

namespace lacuna {

// What a run meets before its first update, for `lacuna check` too.

/// Throws ConfigError if the configuration names no run folder.
void require_run_folder(const Options& options);

/// Throws ConfigError if learned positions end before the longest sentence that `data` lets in.
void require_room_for_sentences(const Options& options);

/// Throws ConfigError if `train.batch_tokens` is `auto` and the memory is not the CPU's.
void require_measurable_memory(const Options& options);

/// What training starts from: the newest checkpoint of the run, else the one that `train.init_from` names; nothing for the beginning. Its
/// vocabularies are brought to `folder`. Throws what find_resume_point and initial_point throw.
std::optional<ResumePoint> find_starting_point(const Options& options, const std::string& folder);

/// The state that training starts with, the model having the point's weights. Throws DataError or CheckpointError if its vocabularies,
/// weights or corpora are not these; `reset` as in check_corpus.
TrainingState start_from(const ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset);

/// Throws ConfigError if two have the same name, and what load_evaluation_set throws.
std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data);

/// sacreBLEU, if validation or test sets are translated. Throws what find_sacrebleu and require_tokenizer throw.
std::optional<Scorer> find_scorer(const Options& options);

/// A sentence to say of training that nothing but an interruption ends; else empty.
std::string note_of_no_end(const TrainOptions& train);

/// A whole run of `lacuna train`: everything a configuration names, put together, and trained from where its run folder stands.
class TrainingRun {
 public:
  /// Reads data, makes the model, and finds where to go on. Throws what any of it finds wrong, before anything is trained.
  explicit TrainingRun(Options options);

  /// Trains, averages, scores the test sets. The exit code: 0, or 128 + the signal that ended it.
  int execute();

 private:
  void choose_products();
  void open_data();
  void make_model();
  void find_start();
  void choose_batch_tokens();
  void open_evaluation_sets();
  void write_configuration() const;
  void describe() const;

  TrainerHooks hooks();
  std::optional<Scores> validate();
  Scores note_validation(const std::vector<Evaluation>& evaluations);
  bool is_averaged() const;
  std::string averaged_path() const;
  std::string path_to_score() const;
  bool are_test_sets_scored() const;
  int complete(const Trainer& trainer);
  void average_last();
  void score_test_sets();

  Options options_;
  std::unique_ptr<RunLock> lock_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState start_;
  bool is_resumed_ = false;
  std::vector<EvaluationSet> validation_sets_, test_sets_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<CheckpointKeeper> keeper_;
  std::unique_ptr<TrainingLog> log_;
  const Trainer* trainer_ = nullptr;  ///< while `execute` runs
};

}  // namespace lacuna

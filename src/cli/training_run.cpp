#include "cli/training_run.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "checkpoint/average.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "data/batch_stream.h"
#include "data/evaluation_set.h"
#include "kernels/bf16_product.h"
#include "train/auto_batch.h"
#include "train/products.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::string in_words(TrainingEnd end, const TrainingState& state, const TrainOptions& options) {
  switch (end) {
    case TrainingEnd::kMaxSteps:
      return fmt::format("step {} >= train.max_steps ({})", state.step, options.max_steps);
    case TrainingEnd::kMaxEpochs:
      return fmt::format("epoch {} >= train.max_epochs ({})", state.position.epoch, options.max_epochs);
    case TrainingEnd::kMaxHours:
      return fmt::format("{:.2f} hours >= train.max_hours ({})", state.hours, options.max_hours);
    case TrainingEnd::kNoImprovement:
      return fmt::format("step {}: no better {} in {} validations since step {}", state.step, score_name(options.metric),
                         state.scores.since_best, state.scores.best_step);
    case TrainingEnd::kInterrupted:
      return fmt::format("step {}: interrupted", state.step);
  }
  return "";
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void write_hypotheses(const fs::path& file, const Evaluation& evaluation) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, lines_of(evaluation.hypotheses));
}

/// A model that goes on from a checkpoint reads and writes with that one's vocabularies, whatever texts come now, unless the configuration
/// names some.
void bring_vocabularies(const Vocabularies& vocabularies, const DataOptions& data, const fs::path& run) {
  const bool names_some = !data.spm_model.empty() || !data.src_spm_model.empty() || data.tokenizer == Tokenizer::kNone;
  if (names_some || !vocabularies.src->is_sentencepiece()) return;
  const auto bring = [&](const char* name, const Vocabulary& vocabulary) {
    if (fs::exists(run / name) && read_file(run / name) == vocabulary.serialized() && !fs::exists(run / (std::string(name) + ".training")))
      return;
    write_file_atomically(run / name, vocabulary.serialized());
    fs::remove(run / (std::string(name) + ".training"));  // the note of what it was trained on: it is given now
  };
  if (vocabularies.shared()) return bring("spm.model", *vocabularies.src);
  bring("spm.src.model", *vocabularies.src);
  bring("spm.tgt.model", *vocabularies.tgt);
}

/// Their names are those of files and of scores.
void require_different_names(const std::vector<CorpusOptions>& corpora) {
  std::set<std::string> names;
  for (const CorpusOptions& corpus : corpora)
    if (!names.insert(name_of(corpus)).second)
      throw ConfigError("data: two sets to score are called \"" + name_of(corpus) + "\", one of them " + corpus.src +
                        "; give it a name of its own: {name: ..., src: ..., tgt: ...}");
}

void require_same_pieces(const Vocabulary& ours, const Vocabulary& theirs, const std::string& side, const std::string& place) {
  bool same = ours.size() == theirs.size();
  for (TokenId id = 0; same && id < ours.size(); ++id) same = ours.piece(id) == theirs.piece(id);
  if (!same)
    throw DataError("the " + side + " vocabulary of " + place +
                    ", from which training would go on, is not that of this configuration. Use its vocabulary (name none in `data`, or the "
                    "same file)");
}

}  // namespace

void require_run_folder(const Options& options) {
  if (options.run.empty()) throw ConfigError("run is empty; expected the folder that training writes to: run: runs/mine");
}

void require_room_for_sentences(const Options& options) {
  const int64_t longest = options.data.max_length + 1, room = options.model.max_positions;
  if (options.model.positions == Positions::kLearned && longest > room)
    throw ConfigError("model.max_positions is " + std::to_string(room) + ", and data.max_length " +
                      std::to_string(options.data.max_length) + " lets sentences of " + std::to_string(longest) +
                      " tokens in, end of sentence counted; make one of them fit the other");
}

void require_measurable_memory(const Options& options) {
  if (!options.train.batch_tokens.value && options.device != "cpu")
    throw ConfigError("train.batch_tokens is auto, which measures the CPU's memory; give a number for " + options.device);
}

std::optional<ResumePoint> find_starting_point(const Options& options, const std::string& folder) {
  std::optional<ResumePoint> point = find_resume_point(options.run);
  if (!point && !options.train.init_from.empty()) point = initial_point(options.train);
  if (point) bring_vocabularies(point->checkpoint.vocabularies, options.data, folder);
  return point;
}

TrainingState start_from(const ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset) {
  require_same_pieces(*data.vocabularies.src, *point.checkpoint.vocabularies.src, "source", point.path);
  require_same_pieces(*data.vocabularies.tgt, *point.checkpoint.vocabularies.tgt, "target", point.path);
  load_weights(model, point.checkpoint.weights, point.path);  // for its words, where they do not fit
  TrainingState state = point.state;
  check_corpus(state, data.fingerprint, reset, point.path);
  return state;
}

std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data) {
  require_different_names(corpora);
  std::vector<EvaluationSet> sets;
  sets.reserve(corpora.size());
  for (const CorpusOptions& corpus : corpora)
    sets.push_back(load_evaluation_set(corpus, options, data.vocabularies, data.plan.batch_tokens));
  return sets;
}

std::optional<Scorer> find_scorer(const Options& options) {
  const bool validates_translations = !options.data.valid.empty() && options.train.valid_translate;
  if (!validates_translations && options.data.test.empty()) return {};
  Scorer scorer = find_sacrebleu(options.sacrebleu);
  require_tokenizer(scorer, options.data.tgt_lang);
  return scorer;
}

std::string note_of_no_end(const TrainOptions& train) {
  if (train.max_steps > 0 || train.max_epochs > 0 || train.max_hours > 0 || train.patience > 0) return "";
  return "none of train.max_steps, max_epochs, max_hours and patience is set: training goes on until it is stopped (Ctrl-C or SIGTERM)";
}

TrainingRun::TrainingRun(Options options) : options_(std::move(options)) {
  require_run_folder(options_);
  require_room_for_sentences(options_);
  lock_ = std::make_unique<RunLock>(options_.run);
  prepare_run_folder(options_);
  options_.train.precision = decided_precision(options_.train.precision, options_.device);  // `auto` counts for new runs only
  log_to_file((fs::path(options_.run) / "train.log").string());
  find_start();
  choose_products();
  open_evaluation_sets();
}

/// The newest checkpoint of the run, or train.init_from, or the beginning.
void TrainingRun::find_start() {
  is_resumed_ = !newest_checkpoint_of(options_.run).empty();
  const std::optional<ResumePoint> point = find_starting_point(options_, options_.run);
  open_data();
  make_model();
  if (point) start_ = start_from(*point, data_, *model_, options_.train.reset);
  choose_batch_tokens();
  if (!point) return;
  restore(*optimizer_, *point, is_resumed_ ? std::vector<std::string>() : options_.train.reset);
  if (!is_resumed_) log_info("starting from {}", point->path);
}

/// A run goes on with what it began to multiply with, as far as this machine has it, and says what it has not.
void TrainingRun::choose_products() {
  if (options_.device != "cpu") return;
  const std::string note = go_on_with(start_.products);
  if (!note.empty()) log_warning("{}: {}", options_.run, note);
  start_.products = products_in_use();
}

void TrainingRun::open_data() {
  data_ = open_training_data(options_.data, options_.run, options_.train.batch_tokens.value.value_or(0), options_.seed_value());
  start_.corpus_fingerprint = data_.fingerprint;
}

void TrainingRun::make_model() {
  model_ = std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value());
  model_->to(at::Device(options_.device));
  model_->train();
  optimizer_ = std::make_unique<Optimizer>(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges());
}

/// `train.batch_tokens: auto`, once: the number found is part of the run's configuration from then on.
void TrainingRun::choose_batch_tokens() {
  require_measurable_memory(options_);
  if (!options_.train.batch_tokens.value) {
    const LossFunction loss = transformer_loss(model_, options_.train, options_.device);
    const MemoryFit fit = fit_batch_to_memory(loss, *optimizer_, options_.data.max_length, model_->sizes());
    log_info("batch_tokens: auto: {} tokens ({:.1f} KiB each, {:.1f} GiB free)", fit.batch_tokens,
             static_cast<double>(fit.bytes_per_token) / 1024, static_cast<double>(fit.available) / (1 << 30));
    options_.train.batch_tokens.value = fit.batch_tokens;
  }
  data_.plan.batch_tokens = *options_.train.batch_tokens.value;
}

void TrainingRun::open_evaluation_sets() {
  validation_sets_ = load_evaluation_sets(options_.data.valid, options_.data, data_);
  test_sets_ = load_evaluation_sets(options_.data.test, options_.data, data_);
  validator_ = std::make_unique<Validator>(model_, data_.vocabularies, options_, find_scorer(options_));
}

void TrainingRun::write_configuration() const {
  write_file_atomically(fs::path(options_.run) / "config.yaml", to_yaml(options_));
}

void TrainingRun::describe() const {
  const TrainOptions& train = options_.train;
  log_info("{}: {} parameters, {} threads, device {}, {}", options_.run, optimizer_->num_parameters(), at::get_num_threads(),
           options_.device, name_of(factor_precision(train, options_.device)));
  if (train.precision == Precision::kBf16 && options_.device == "cpu" && !has_bf16_instructions())
    log_warning("train.precision is bf16, and this processor has no instructions for it: fp32 is faster here");
  if (train.precision == Precision::kBf16x3 && factor_precision(train, options_.device) == FactorPrecision::kFp32)
    log_warning("train.precision is bf16x3, and only processors with tiles (AMX) have products for it: fp32 is used");
  log_info("effective batch: {} tokens ({} a batch x {} batches an update)", *train.batch_tokens.value * train.update_freq,
           *train.batch_tokens.value, train.update_freq);
  log_info("an epoch: {} sentence pairs, {} source and {} target tokens", data_.summary.kept, data_.summary.src_tokens,
           data_.summary.tgt_tokens);
  if (const std::string note = note_of_no_end(train); !note.empty()) log_info("{}", note);
  if (is_resumed_) log_info("going on after step {} (epoch {}, batch {})", start_.step, start_.position.epoch + 1, start_.position.batch);
}

int TrainingRun::execute() {
  const std::unique_ptr<BatchStream> stream = make_batch_stream(data_.plan, start_.position);
  keeper_ = std::make_unique<CheckpointKeeper>(options_.run, options_.train, to_yaml(options_), data_.vocabularies, *optimizer_);
  const RunLength length = {options_.train.max_steps, options_.train.max_epochs, data_.summary.tgt_tokens};
  log_ = std::make_unique<TrainingLog>(options_.run, start_, length);
  Trainer trainer(options_.train, options_.seed_value(), transformer_loss(model_, options_.train, options_.device), *stream, *optimizer_,
                  LearningRate(options_.train, options_.model.d_model), hooks(), start_);
  trainer_ = &trainer;
  keeper_->tidy();
  keeper_->require_disk_room();
  write_configuration();
  if (const auto end = trainer.end(); end && is_averaged() && are_test_sets_scored()) {
    log_->say("already at " + in_words(*end, trainer.state(), options_.train) + ": nothing to do");
    return 0;
  }
  describe();
  const TrainingEnd end = trainer.run();
  keeper_->wait();
  log_->say((end == TrainingEnd::kInterrupted ? "stopped at " : "training ended at ") + in_words(end, trainer.state(), options_.train));
  return complete(trainer);
}

TrainerHooks TrainingRun::hooks() {
  TrainerHooks hooks;
  hooks.log = [this](const TrainingProgress& progress) { log_->progress(progress); };
  if (!validation_sets_.empty()) hooks.validate = [this] { return validate(); };
  hooks.save = [this](const TrainingState& state, const Scores& scores, bool is_scheduled) { keeper_->save(state, scores, is_scheduled); };
  hooks.is_interrupted = [] { return interrupt_signal() != 0; };
  hooks.on_update = [this](const TrainingState& state) {
    log_->update(state);
    keeper_->check();
  };
  hooks.warn = [this](const std::string& text) { log_->warn(text); };
  return hooks;
}

std::optional<Scores> TrainingRun::validate() {
  model_->set_step(trainer_->state().step);
  TranslateOptions search = options_.translate;
  search.beam_size = options_.train.valid_beam_size;
  search.n_best = 1;
  std::vector<Evaluation> evaluations;
  for (const EvaluationSet& set : validation_sets_) {
    std::optional<Evaluation> evaluation = validator_->evaluate(set, search, options_.train.valid_translate);
    if (!evaluation) return {};
    evaluations.push_back(std::move(*evaluation));
  }
  return note_validation(evaluations);
}

/// The scores of the first set decide; those of others are named after their set: "newstest.bleu".
Scores TrainingRun::note_validation(const std::vector<Evaluation>& evaluations) {
  const int64_t step = trainer_->state().step;
  Scores scores;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const Evaluation& evaluation = evaluations[i];
    log_->validation(step, evaluation, validation_sets_[i], i == 0 ? options_.train.num_samples : 0);
    for (const auto& [name, score] : evaluation.scores) scores[i == 0 ? name : evaluation.name + "." + name] = score;
    const std::string file = fmt::format("{}step_{}.hyp", i == 0 ? "" : evaluation.name + ".", step);
    if (options_.train.valid_translate) write_hypotheses(fs::path(options_.run) / "valid" / file, evaluation);
  }
  log_->attention(step, validator_->attention_summary(validation_sets_.front()));
  return scores;
}

/// Whether the average of the last checkpoints is there, if it is wanted: the end of training comes before it. One of more checkpoints than
/// are wanted now, or of others, is not.
bool TrainingRun::is_averaged() const {
  const int64_t wanted = options_.train.average_last;
  if (wanted == 0) return true;
  if (!fs::exists(averaged_path())) return false;
  const CheckpointInfo info = read_checkpoint_info(averaged_path());
  std::set<std::string> read;
  for (const std::string& path : info.averaged_from) read.insert(fs::path(path).filename().string());
  const std::vector<std::string> last = last_checkpoints(options_.run, wanted);
  return info.step == trainer_->state().step && static_cast<int64_t>(read.size()) <= wanted &&
         std::all_of(last.begin(), last.end(), [&](const std::string& path) { return read.contains(fs::path(path).filename().string()); });
}

/// The weights that translate the test sets.
std::string TrainingRun::path_to_score() const {
  const fs::path run(options_.run), best = run / "best";
  return options_.train.average_last > 0 ? averaged_path() : (fs::exists(best) ? best : run / "last").string();
}

/// Whether an earlier start has come to the end of that.
bool TrainingRun::are_test_sets_scored() const {
  if (test_sets_.empty()) return true;
  std::set<std::string> scored;
  const int64_t step = read_checkpoint_info(path_to_score()).step;
  std::ifstream metrics(fs::path(options_.run) / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("kind", "") == "test" && record.value("step", int64_t{-1}) == step)
      scored.insert(record.value("set", ""));
  }
  return std::all_of(test_sets_.begin(), test_sets_.end(), [&](const EvaluationSet& set) { return scored.contains(set.name); });
}

std::string TrainingRun::averaged_path() const {
  return (fs::path(options_.run) / "averaged").string();
}

int TrainingRun::complete(const Trainer& trainer) {
  if (trainer.end()) {
    average_last();
    if (interrupt_signal() == 0) score_test_sets();
  }
  return interrupt_signal() == 0 ? 0 : 128 + interrupt_signal();
}

void TrainingRun::average_last() {
  if (options_.train.average_last == 0) return;
  const std::vector<std::string> paths = last_checkpoints(options_.run, options_.train.average_last);
  save_checkpoint(averaged_path(), average_checkpoints(paths));
  log_->say(fmt::format("averaged the last {} checkpoints into {}", paths.size(), averaged_path()));
}

void TrainingRun::score_test_sets() {
  if (test_sets_.empty()) return;
  const std::string place = path_to_score();
  const CheckpointContents contents = load_checkpoint(place);
  load_weights(*model_, contents.translating_weights(), place);
  model_->set_step(contents.info.step);
  for (const EvaluationSet& set : test_sets_) {
    const std::optional<Evaluation> evaluation = validator_->evaluate(set, options_.translate, /*translates=*/true);
    if (!evaluation) return;
    write_hypotheses(fs::path(options_.run) / "test" / (set.name + ".hyp"), *evaluation);
    log_->test(contents.info.step, *evaluation, place);  // last: it says that the set is done
  }
}

}  // namespace lacuna

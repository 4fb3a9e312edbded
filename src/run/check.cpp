#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/device.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/spelling.h"
#include "base/stopwatch.h"
#include "checkpoint/run_folder.h"
#include "data/batch.h"
#include "data/batch_maker.h"
#include "data/corpus_reader.h"
#include "run/remarks.h"
#include "run/requirements.h"
#include "run/starting_point.h"
#include "run/training_run.h"
#include "run/validation.h"
#include "search/step_model.h"
#include "search/translator.h"
#include "train/auto_batch.h"
#include "train/checkpoint_keeper.h"
#include "train/diagnosis.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

constexpr int kTimedUpdates = 3;
constexpr int64_t kAutoTokens = 4096;
constexpr double kMebi = 1024.0 * 1024.0;

/// Counts of lengths below 16, below 32, ..., the last one of all others, as text.
template <class Counts>
std::string histogram(const Counts& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ",
                          i + 1 < counts.size() ? fmt::format("<{}", 16 * (i + 1)) : fmt::format(">={}", 16 * i), counts[i]);
  return text;
}

/// "40 seconds", "12 minutes", "3.5 hours", "2.1 days".
std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} seconds", std::max(seconds, 1.0));
  if (seconds < 90 * 60) return fmt::format("{:.0f} minutes", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} hours", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

/// Returns true if the disk was full, or the user's share of it.
bool is_of_full_disk(const MachineError& error) {
  const std::string text = error.what();
  return text.find(std::strerror(ENOSPC)) != std::string::npos || text.find(std::strerror(EDQUOT)) != std::string::npos;
}

/// What is left to a limit of the configuration, of which 0 is none.
double left_to(double limit, double done) {
  return limit > 0 ? std::max(limit - done, 0.0) : std::numeric_limits<double>::infinity();
}

class DryRun {
 public:
  DryRun(const Configuration& given, std::ostream& out) : options_(given.options), rules_(given.rules), out_(out) {}

  void replay(const std::string& file) {
    require_trainable(options_, rules_);
    start_ = find_starting_point(options_, adopt_choices(options_), rules_);
    if (!start_) open_data();
    const Vocabularies vocabularies = start_ ? start_->checkpoint.vocabularies : data_.vocabularies;
    const SavedUpdate update = SavedUpdate::read(file, vocabularies);
    build_model(vocabularies);
    if (start_) load_weights(*model_, start_->checkpoint.weights, start_->path);
    say("weights", start_ ? start_->path : "as initialized: there is no checkpoint");
    int64_t pairs = 0;
    for (const BatchPtr& batch : update.batches) pairs += batch->src_shape->num_sentences();
    say("update", fmt::format("step {}, {}", update.step, counted(pairs, "sentence pair")));
    const std::string found = first_not_finite(update, loss_, options_.seed_value(), *optimizer_);
    say("found", found.empty() ? "all values are finite" : found);
    say("try", found.empty()
                   ? "a lower train.lr, a longer train.warmup_steps or a lower train.clip_norm: with these weights the pairs are sound"
                   : "train.precision: fp32, or a corpus without these pairs: they give such numbers with sound weights");
  }

  void run() {
    try {
      check_start();
      check_data();
      check_evaluation_sets();
    } catch (const DataError&) {
      list_bad_texts();
      throw;
    }
    check_training();
    check_translation();
    stop_if_interrupted("checking");
    const int64_t all = warnings_ + warnings_logged();
    const std::string warnings = all == 0 ? "no warnings" : counted(all, "warning") + " above";
    if (end_)
      out_ << "finished: there is nothing left to train (" << warnings << ")" << std::endl;
    else
      out_ << "ready for lacuna train: " << warnings << std::endl;
  }

 private:
  void say(const std::string& what, const std::string& fact) { out_ << fmt::format("{:<21} {}", what, fact) << std::endl; }

  /// Says and counts a warning; none if it is empty.
  void warn(const std::string& what, const std::string& warning) {
    if (warning.empty()) return;
    ++warnings_;
    say(what, "warning: " + warning);
  }

  /// If more than one text is bad, says what is wrong with each and throws: so that all can be mended before the next start.
  void list_bad_texts() {
    std::vector<std::pair<std::string, std::string>> bad;  // name and error
    for (const auto* corpora : {&options_.data.train, &options_.data.valid, &options_.data.test}) {
      for (const CorpusOptions& corpus : *corpora) {
        if (corpus.stream) continue;
        try {
          for (const auto& [file, what] : corpus.files()) require_corpus_file(file, what);
          corpora == &options_.data.train ? count_pairs(corpus, options_.data.bad_lines, kSkipInTraining) : count_pairs(corpus);
        } catch (const DataError& error) {
          bad.emplace_back(name_of(corpus), error.what());
        }
      }
    }
    if (bad.size() < 2) return;
    for (const auto& [name, error] : bad) say(name, "error: " + error);
    throw DataError(fmt::format("{} texts of this configuration cannot be taken as they are; all are listed above", bad.size()));
  }

  void check_start() {
    require_trainable(options_, rules_);
    replaces_run_ = adopt_choices(options_);
    require_measurable_memory(options_, rules_);
    scorer_ = find_scorer(options_);
    start_ = find_starting_point(options_, replaces_run_, rules_);
    if (!start_) return;
    say("starts from", start_->path);
    end_ = end_of(start_->state, start_->state.hours, options_.train);
    if (end_) say("finished", end_text(*end_, start_->state, options_.train));
  }

  void open_data() {
    const std::string folder = folder_.path().string();
    try {
      data_ = open_training_data(options_.data, folder, options_.train.batch_tokens.value_or(kAutoTokens), options_.seed_value(),
                                 kept_vocabularies(start_, options_.data, rules_));
    } catch (const MachineError& error) {
      if (!is_of_full_disk(error) || !options_.data.cache.empty()) throw;
      throw MachineError(std::string(error.what()) + ". Until it ends, a check keeps the token cache in " + folder +
                         ": set TMPDIR to a folder on another disk, or data.cache to one that training takes too");
    }
  }

  void check_data() {
    open_data();
    if (data_.plan.stream)
      say("training data", data_.plan.stream->name() + ", as it comes (stream): none of it is looked at here");
    else
      say("training data", data_.summary.text());
    for (const auto& [name, kind] : data_.summary.bad.kinds)
      warn("bad lines", fmt::format("{} left out, {}; the first: {}", counted(kind.lines, "line"), name, kind.first));
    if (!options_.data.cache.empty()) say("token cache", "written to " + options_.data.cache + " (data.cache), for training too");
    if (!data_.plan.stream) {
      say("source lengths", histogram(data_.summary.src_lengths));
      say("target lengths", histogram(data_.summary.tgt_lengths));
    }
    say("vocabulary", fmt::format("{} source, {} target pieces{}", data_.vocabularies.src->size(), data_.vocabularies.tgt->size(),
                                  data_.vocabularies.shared() ? ", shared" : ""));
    if (data_.summary.carriage_returns > 0)
      say("unusual bytes", counted(data_.summary.carriage_returns, "carriage return") + " before line ends");
  }

  void check_evaluation_sets() {
    for (const auto* sets : {&options_.data.valid, &options_.data.test})
      for (const EvaluationSet& set : load_evaluation_sets(*sets, options_.data, data_))
        say(set.name, counted(std::ssize(set.src_lines), "pair"));
    warn("validation", warning_of_no_validation(options_.data));
    if (scorer_) say("sacreBLEU", scorer_->command.front());
  }

  void check_training() {
    require_memory_for_model(options_, sizes_of(data_.vocabularies));
    const double free_mebibytes = static_cast<double>(available_memory()) / kMebi;
    make_model();
    say("parameters", std::to_string(optimizer_->num_parameters()));
    const double rate = measured_rate();
    stop_if_interrupted("training some batches");
    take_most_memory();
    const std::string free = options_.device == "cpu" ? fmt::format("; {:.0f} MiB were free", free_mebibytes) : " of the GPU";
    say("memory", fmt::format("{:.0f} MiB with the batch that takes most{}", peak_mebibytes(at::Device(options_.device)), free));
    describe_length(rate);
    describe_disk();
  }

  void build_model(const Vocabularies& vocabularies) {
    model_ = std::make_shared<Transformer>(options_.model, sizes_of(vocabularies), options_.seed_value());
    model_->to(at::Device(options_.device));
    optimizer_ = std::make_unique<Optimizer>(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges());
    loss_ = transformer_loss(model_, options_.train, options_.device);
  }

  /// Batches of an update: those of the run that goes on, or of a new one that a single process serves.
  int64_t batches_per_update() const {
    const int64_t of_run = start_ ? start_->state.batches_per_update : state_.batches_per_update;
    return of_run > 0 ? of_run : options_.train.update_freq;
  }

  /// Makes the model as training has it at its start.
  void make_model() {
    choose_schedule(options_, data_, batches_per_update(), start_);
    build_model(data_.vocabularies);
    if (start_) state_ = start_from(*start_, data_, *model_, options_.train.reset);
    start_.reset();
  }

  /// Returns the target tokens a second of a few updates. The first, which fills caches, does not count.
  double measured_rate() {
    const auto stream = data_.plan.stream ? nullptr : make_batch_stream(data_.plan);
    int64_t tokens = 0;
    double seconds = 0;
    for (int i = 0; i <= kTimedUpdates; ++i) {
      stop_if_interrupted("training some batches");
      const auto batch = stream ? stream->next() : random_batch(usual_batch());
      const Stopwatch one;
      const LossSums losses = loss_(*batch, {.training = true, .seed = options_.seed_value(), .step = i});
      losses.backward();
      optimizer_->update(options_.train.lr * 1e-3, 1.0 / static_cast<double>(batch->tgt_tokens()), losses.has_auxiliary());
      if (i == 0) continue;
      seconds += one.seconds();
      tokens += batch->tgt_tokens();
    }
    return static_cast<double>(tokens) / seconds;
  }

  /// Describes a batch of sentences of a usual length, for texts that cannot be looked at.
  RandomBatch usual_batch() const {
    constexpr int64_t kUsualLength = 30;
    const VocabularySizes sizes = sizes_of(data_.vocabularies);
    return {.tokens = options_.train.batch_tokens.value_or(kAutoTokens),
            .sentence_length = std::min(kUsualLength, options_.data.max_length),
            .src_pieces = sizes.src,
            .tgt_pieces = sizes.tgt};
  }

  /// Trains on full batches of the lengths that may take most.
  void take_most_memory() {
    const int64_t most_tokens = options_.train.batch_tokens.value_or(kAutoTokens);
    const VocabularySizes sizes = sizes_of(data_.vocabularies);
    for (const int64_t length : costly_lengths(std::min(most_tokens, options_.data.max_length + 1)))
      loss_(*random_batch({.tokens = most_tokens, .sentence_length = length, .src_pieces = sizes.src, .tgt_pieces = sizes.tgt}),
            {.training = true})
          .backward();
    optimizer_->clear_gradients();
  }

  /// Says how many updates an epoch has, and how long it and the rest of the run take at `rate` target tokens a second.
  void describe_length(double rate) {
    const TrainOptions& train = options_.train;
    if (data_.plan.stream) return say("speed", fmt::format("about {:.0f} target tokens a second, of sentences of a usual length", rate));
    const double epoch = static_cast<double>(epoch_size(data_.plan).tgt_tokens);
    const double updates = updates_per_epoch(batches_per_update(), data_), per_update = epoch / updates;
    say("effective batch", fmt::format("about {:.0f} target tokens an update, {:.0f} updates an epoch", per_update, updates));
    if (!train.batch_tokens.value)
      say("batch_tokens", fmt::format("auto: these numbers are of {}; a new run measures how many fit the memory", kAutoTokens));
    say("speed", fmt::format("about {:.0f} target tokens a second: {} an epoch", rate, duration_text(epoch / rate)));
    if (!end_) {
      const double tokens = std::min(epoch * left_to(static_cast<double>(train.max_epochs), static_cast<double>(state_.position.epoch)),
                                     per_update * left_to(static_cast<double>(train.max_steps), static_cast<double>(state_.step)));
      const double seconds = std::min(tokens / rate, 3600 * left_to(train.max_hours, state_.hours));
      const char* const what = state_.step > 0 ? "the rest of the run" : "the whole run";
      if (std::isfinite(seconds)) say("time", fmt::format("about {} for {}, without validation", duration_text(seconds), what));
      if (train.patience.value_or(0) > 0)
        say("end", fmt::format("after {} without a better {} (train.patience), if not before", counted(*train.patience.value, "validation"),
                               score_name(train.metric)));
    }
    say("warm-up", fmt::format("{} updates", train.warmup_steps.value_or(0)));
    warn("end", warning_of_no_end(train));
    warn("warm-up", warning_of_warmup(train, updates, state_));
  }

  void describe_disk() {
    TrainOptions train = options_.train;
    if (options_.data.valid.empty()) train.keep_best = 0;  // no checkpoint has a score
    const CheckpointKeeper keeper(options_.run, train, "", data_.vocabularies, *optimizer_);
    const double cache = 4.0 * static_cast<double>(data_.summary.src_tokens + data_.summary.tgt_tokens) / kMebi;
    say("disk",
        fmt::format("about {:.0f} MiB of checkpoints and {:.0f} MiB of token cache; {:.0f} MiB are free",
                    static_cast<double>(keeper.run_bytes()) / kMebi, cache, static_cast<double>(free_disk_space(options_.run)) / kMebi));
    keeper.require_disk_room(replaces_run_ ? bytes_of_checkpoints(options_.run) : 0);
  }

  void check_translation() {
    if (data_.plan.stream) return;
    model_->eval();
    const at::NoGradGuard no_gradients;
    const auto ids = data_.plan.corpora.front()->src(0);
    const std::string line = data_.vocabularies.src->decode(std::vector<TokenId>(ids.begin(), ids.end()));
    TranslateOptions search = options_.translate;
    search.max_length = std::min<int64_t>(search.max_length, 32);  // an untrained model does not know when to stop
    search.min_length = std::min(search.min_length, search.max_length);
    TransformerStepModel step_model(model_);
    say("one sentence", line);
    say(state_.step > 0 ? "translated" : "translated, untrained", translate_lines(step_model, data_.vocabularies, {line}, search).front());
  }

  Options options_;
  Rules rules_;
  std::ostream& out_;
  TemporaryFolder folder_;
  bool replaces_run_ = false;  ///< the one in the run folder
  int64_t warnings_ = 0;       ///< beside those of the log
  std::optional<Scorer> scorer_;
  std::optional<ResumePoint> start_;
  std::optional<TrainingEnd> end_;  ///< of a run that has finished
  TrainingState state_;             ///< that training starts with
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<Optimizer> optimizer_;
  LossFunction loss_;
};

}  // namespace

void check_configuration(const Configuration& given, std::ostream& out) {
  DryRun(given, out).run();
}

void replay_update(const Configuration& given, const std::string& file, std::ostream& out) {
  DryRun(given, out).replay(file);
}

}  // namespace lacuna

#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/peak_memory.h"
#include "base/spelling.h"
#include "base/stopwatch.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "data/batch_stream.h"
#include "data/random_batch.h"
#include "model/mask_model.h"
#include "run/training_start.h"
#include "search/step_model.h"
#include "search/translator.h"
#include "train/auto_batch.h"
#include "train/checkpoint_keeper.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

constexpr int kTimedUpdates = 3;
constexpr int64_t kAutoTokens = 4096;
constexpr double kMebi = 1024.0 * 1024.0;

/// Counts of lengths below 16, below 32, ..., the last one of all others.
template <class Counts>
std::string histogram(const Counts& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ",
                          i + 1 < counts.size() ? fmt::format("<{}", 16 * (i + 1)) : fmt::format(">={}", 16 * i), counts[i]);
  return text;
}

/// Whether the disk was full, or the user's share of it.
bool is_of_full_disk(const MachineError& error) {
  const std::string text = error.what();
  return text.find(std::strerror(ENOSPC)) != std::string::npos || text.find(std::strerror(EDQUOT)) != std::string::npos;
}

/// A limit of the configuration, of which 0 is none.
double limit(double value) {
  return value > 0 ? value : std::numeric_limits<double>::infinity();
}

class Check {
 public:
  explicit Check(const Configuration& given) : options_(given.options), rules_(given.rules) {}

  void run() {
    check_start();
    check_data();
    check_evaluation_sets();
    check_training();
    check_translation();
    stop_if_interrupted("checking");
    std::cout << "nothing stands in the way: lacuna train" << std::endl;
  }

 private:
  static void say(const std::string& what, const std::string& fact) { std::cout << fmt::format("{:<18} {}", what, fact) << std::endl; }

  void check_start() {
    require_trainable(options_, rules_);
    replaces_run_ = adopt_choices(options_);
    require_measurable_memory(options_, rules_);
    scorer_ = find_scorer(options_);
    start_ = find_starting_point(options_, replaces_run_, rules_);
    if (start_) say("starts from", start_->path);
  }

  void open_data() {
    const std::string folder = folder_.path().string();
    try {
      data_ = open_training_data(options_.data, folder, options_.train.batch_tokens.value.value_or(kAutoTokens), options_.seed_value(),
                                 vocabularies_kept(start_, options_.data, rules_));
    } catch (const MachineError& error) {
      if (!is_of_full_disk(error) || !options_.data.cache.empty()) throw;
      throw MachineError(std::string(error.what()) + ". Until it ends, a check keeps the token cache in " + folder +
                         ": set TMPDIR to a folder on another disk, or data.cache to one that training takes too");
    }
  }

  void check_data() {
    open_data();
    say("training data", data_.summary.text());
    if (!options_.data.cache.empty()) say("token cache", "written to " + options_.data.cache + " (data.cache), for training too");
    say("source lengths", histogram(data_.summary.src_lengths));
    say("target lengths", histogram(data_.summary.tgt_lengths));
    say("vocabulary", fmt::format("{} source, {} target pieces{}", data_.vocabularies.src->size(), data_.vocabularies.tgt->size(),
                                  data_.vocabularies.shared() ? ", shared" : ""));
    if (data_.summary.carriage_returns > 0)
      say("odd bytes", counted(data_.summary.carriage_returns, "carriage return") + " before line ends");
  }

  void check_evaluation_sets() {
    for (const auto* sets : {&options_.data.valid, &options_.data.test})
      for (const EvaluationSet& set : load_evaluation_sets(*sets, options_.data, data_))
        say(set.name, counted(std::ssize(set.src_lines), "pair"));
    if (const std::string note = note_of_no_validation(options_.data); !note.empty()) say("validation", note);
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
    describe_batches(rate);
    describe_disk();
  }

  /// As training has it at its start.
  void make_model() {
    model_ = std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value());
    move_to(*model_, options_.device);
    optimizer_ = std::make_unique<Optimizer>(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges());
    loss_ = transformer_loss(model_, options_.train, options_.device);
    if (start_) state_ = start_from(*start_, data_, *model_, options_.train.reset);
    start_.reset();
  }

  /// Target tokens a second, of a few updates of which the first, which fills caches, does not count.
  double measured_rate() {
    const auto stream = make_batch_stream(data_.plan);
    int64_t tokens = 0;
    double seconds = 0;
    for (int i = 0; i <= kTimedUpdates; ++i) {
      stop_if_interrupted("training some batches");
      const auto batch = stream->next();
      const Stopwatch one;
      const LossSums losses = loss_(*batch, {.training = true, .seed = options_.seed_value(), .step = i});
      losses.backward();
      optimizer_->update(options_.train.lr * 1e-3, 1.0 / static_cast<double>(batch->tgt_tokens()), losses.has_mask_pass());
      if (i == 0) continue;
      seconds += one.seconds();
      tokens += batch->tgt_tokens();
    }
    return static_cast<double>(tokens) / seconds;
  }

  /// Trains on full batches of the lengths that may take most.
  void take_most_memory() {
    const int64_t most_tokens = options_.train.batch_tokens.value.value_or(kAutoTokens);
    const VocabularySizes sizes = sizes_of(data_.vocabularies);
    for (const int64_t length : costly_lengths(std::min(most_tokens, options_.data.max_length + 1)))
      loss_(*random_batch({.tokens = most_tokens, .sentence_length = length, .src_pieces = sizes.src, .tgt_pieces = sizes.tgt}),
            {.training = true})
          .backward();
    optimizer_->clear_gradients();
  }

  void describe_batches(double rate) const {
    const double per_epoch = static_cast<double>(epoch_size(data_.plan).tgt_tokens);
    const double updates = batches_of_epoch(data_.plan) / static_cast<double>(options_.train.update_freq), per_update = per_epoch / updates;
    say("effective batch", fmt::format("about {:.0f} target tokens an update, {:.0f} updates an epoch", per_update, updates));
    if (!options_.train.batch_tokens.value)
      say("batch_tokens", fmt::format("auto: these numbers are of {}; a new run measures how many fit the memory", kAutoTokens));
    say("speed", fmt::format("about {:.0f} target tokens a second: {:.1f} minutes an epoch", rate, per_epoch / rate / 60));
    const double tokens = std::min(per_epoch * limit(static_cast<double>(options_.train.max_epochs)),
                                   per_update * limit(static_cast<double>(options_.train.max_steps)));
    const double hours = std::min(tokens / rate / 3600, limit(options_.train.max_hours));
    if (std::isfinite(hours)) say("time", fmt::format("about {:.1f} hours for the whole run, without validation", hours));
    if (const std::string note = note_of_no_end(options_.train); !note.empty()) say("end", note);
    if (const std::string note = note_of_warmup(options_.train, updates, state_); !note.empty()) say("warm-up", note);
  }

  void describe_disk() const {
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
    model_->eval();
    const at::NoGradGuard no_gradients;
    const auto ids = data_.plan.corpora.front()->src(0);
    const std::string line = data_.vocabularies.src->decode(std::vector<TokenId>(ids.begin(), ids.end()));
    TranslateOptions search = options_.translate;
    search.max_length = std::min<int64_t>(search.max_length, 32);  // an untrained model does not know when to stop
    search.min_length = std::min(search.min_length, search.max_length);
    TransformerStepModel step_model(model_);
    const auto translated = translate_lines(step_model, data_.vocabularies, {line}, search);
    say("one sentence", fmt::format("\"{}\" was translated: {} bytes", line, translated.front().size()));
  }

  Options options_;
  Rules rules_;
  TemporaryFolder folder_;
  bool replaces_run_ = false;  ///< the one in the run folder
  std::optional<Scorer> scorer_;
  std::optional<ResumePoint> start_;
  TrainingState state_;  // that training starts with
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<Optimizer> optimizer_;
  LossFunction loss_;
};

int run_check(const std::vector<std::string>& arguments) {
  CLI::App app(
      "A dry run of a configuration: reads the data, trains some batches, translates a sentence, and writes nothing but data.cache, where "
      "it is set.",
      "lacuna check");
  CommonFlags flags;
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  if (!parse_command_line(app, arguments)) return 0;
  const std::optional<Configuration> configuration = flags.configuration(app);
  if (!configuration) return 0;
  handle_interrupts();
  Check(*configuration).run();
  return 0;
}

}  // namespace

Verb check_verb() {
  return {"check", "a dry run of a configuration: data, memory, time, disk", run_check};
}

}  // namespace lacuna

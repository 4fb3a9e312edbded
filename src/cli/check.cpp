#include <ATen/core/grad_mode.h>
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <iostream>

#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "data/batch_stream.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "metrics/sacrebleu.h"
#include "search/translator.h"
#include "train/optimizer.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

constexpr int kTimedUpdates = 3;
constexpr double kMebi = 1024.0 * 1024.0;

/// Resident memory of this process now, in MiB.
double resident_mebibytes() {
  std::string line;
  for (LineReader reader("/proc/self/status"); reader.next(line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

class Check {
 public:
  explicit Check(Options options) : options_(std::move(options)) {}

  void run() {
    check_data();
    check_evaluation_sets();
    check_training();
    check_translation();
    std::cout << "nothing stands in the way: lacuna train" << std::endl;
  }

 private:
  static void say(const std::string& what, const std::string& fact) { std::cout << fmt::format("{:<18} {}", what, fact) << std::endl; }

  void check_data() {
    const int64_t batch_tokens = options_.train.batch_tokens.value.value_or(4096);
    data_ = open_training_data(options_.data, folder_.path().string(), batch_tokens, options_.seed_value());
    say("training data", data_.summary.text());
    std::string histogram;
    for (size_t i = 0; i < data_.summary.tgt_lengths.size(); ++i)
      if (data_.summary.tgt_lengths[i] > 0)
        histogram += fmt::format("{}{}: {}", histogram.empty() ? "" : ", ",
                                 i + 1 < data_.summary.tgt_lengths.size() ? fmt::format("<{}", 16 * (i + 1)) : fmt::format(">={}", 16 * i),
                                 data_.summary.tgt_lengths[i]);
    say("target lengths", histogram);
    say("vocabulary", fmt::format("{} source, {} target pieces{}", data_.vocabularies.src->size(), data_.vocabularies.tgt->size(),
                                  data_.vocabularies.shared() ? ", shared" : ""));
    if (data_.summary.carriage_returns > 0)
      say("odd bytes", fmt::format("{} carriage returns before line ends", data_.summary.carriage_returns));
  }

  void check_evaluation_sets() {
    for (const auto* sets : {&options_.data.valid, &options_.data.test})
      for (const CorpusOptions& corpus : *sets) {
        const EvaluationSet set = load_evaluation_set(corpus, options_.data, data_.vocabularies, data_.plan.batch_tokens);
        say(set.name, fmt::format("{} pairs", set.src_lines.size()));
      }
    if (options_.data.valid.empty() || !options_.train.valid_translate) return;
    const Scorer scorer = find_sacrebleu(options_.sacrebleu);
    require_tokenizer(scorer, options_.data.tgt_lang);
    say("sacreBLEU", scorer.command.front());
  }

  void check_training() {
    model_ = std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value());
    model_->to(at::Device(options_.device));
    Optimizer optimizer(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges());
    const auto loss = transformer_loss(model_, options_.train, options_.device);
    const auto stream = make_batch_stream(data_.plan);
    int64_t tokens = 0;
    double seconds = 0;
    for (int i = 0; i <= kTimedUpdates; ++i) {
      const auto batch = stream->next();
      const auto begin = std::chrono::steady_clock::now();
      const LossSums losses = loss(*batch, {.training = true, .seed = options_.seed_value(), .step = i});
      losses.backward();
      optimizer.update(options_.train.lr * 1e-3, 1.0 / static_cast<double>(batch->tgt_tokens()), losses.has_mask_pass());
      if (i == 0) continue;  // the first one fills caches
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      tokens += batch->tgt_tokens();
    }
    const double rate = static_cast<double>(tokens) / seconds;
    say("parameters", std::to_string(optimizer.num_parameters()));
    say("memory", fmt::format("{:.0f} MiB with one batch in work", resident_mebibytes()));
    describe_batches(rate, static_cast<double>(tokens) / kTimedUpdates);
    describe_disk(optimizer.num_parameters());
  }

  void describe_batches(double rate, double tokens_per_batch) const {
    const double per_update = tokens_per_batch * static_cast<double>(options_.train.update_freq);
    const double per_epoch = static_cast<double>(data_.summary.tgt_tokens);
    say("effective batch",
        fmt::format("about {:.0f} target tokens an update, {:.0f} updates an epoch", per_update, per_epoch / per_update));
    double tokens = options_.train.max_epochs > 0 ? per_epoch * static_cast<double>(options_.train.max_epochs) : 0;
    if (const double by_steps = per_update * static_cast<double>(options_.train.max_steps); by_steps > 0)
      tokens = tokens > 0 ? std::min(tokens, by_steps) : by_steps;
    say("speed", fmt::format("about {:.0f} target tokens a second: {:.1f} minutes an epoch", rate, per_epoch / rate / 60));
    if (tokens > 0) say("time", fmt::format("about {:.1f} hours for the whole run, without validation", tokens / rate / 3600));
  }

  void describe_disk(int64_t parameters) const {
    const double model = 4.0 * static_cast<double>(parameters) / kMebi;
    const double copies = static_cast<double>(options_.train.keep_last + options_.train.keep_best) + 2;  // trainer state: two moments
    const double cache = 4.0 * static_cast<double>(data_.summary.src_tokens + data_.summary.tgt_tokens) / kMebi;
    const std::string folder = options_.run.empty() ? "." : options_.run;
    say("disk", fmt::format("about {:.0f} MiB of checkpoints and {:.0f} MiB of token cache; {:.0f} MiB are free", model * copies, cache,
                            static_cast<double>(free_disk_space(folder)) / kMebi));
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
    say("one sentence", fmt::format("\"{}\" was translated (by an untrained model: {} bytes)", line, translated.front().size()));
  }

  Options options_;
  TemporaryFolder folder_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
};

int run_check(const std::vector<std::string>& arguments) {
  CLI::App app("A dry run of a configuration: reads the data, trains some batches, translates a sentence, and writes nothing.",
               "lacuna check");
  CommonFlags flags;
  flags.declare_configuration(app);
  flags.declare_runtime(app);
  if (!parse_command_line(app, arguments)) return 0;
  const std::optional<Options> options = flags.configuration(app);
  if (!options) return 0;
  Check(*options).run();
  return 0;
}

}  // namespace

Verb check_verb() {
  return {"check", "a dry run of a configuration: data, memory, time, disk", run_check};
}

}  // namespace lacuna

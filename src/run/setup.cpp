#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "config/run_files.h"
#include "data/batch_maker.h"
#include "kernels/cpu_target.h"
#include "model/precision.h"
#include "run/remarks.h"
#include "run/requirements.h"
#include "run/starting_point.h"
#include "run/training_run.h"
#include "train/auto_batch.h"
#include "train/products.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Hashes a validation set's lines and what joins them: scores of others do not compare with its own.
std::string validation_fingerprint(const EvaluationSet& set, const std::string& joiner) {
  ContentHash hash;
  for (const std::vector<std::string>* lines : {&set.src_lines, &set.tgt_lines}) {
    std::string text;
    for (const std::string& line : *lines) text += line + "\n";
    hash.add(text);
  }
  if (!joiner.empty()) hash.add(joiner);
  return hash.text();
}

/// Puts the lists of bad lines that do not train, corpus by corpus, into one file of the run folder.
void list_rejects(const RunSetup& run) {
  if (run.data.summary.bad.count() == 0) return;
  FileReplacement all(fs::path(run.folder()) / run_files::kRejects);
  for (const auto& corpus : run.data.plan.corpora) {
    if (corpus->rejects().empty()) continue;
    const FileReader list(corpus->rejects());
    std::string bytes(size_t{1} << 20, '\0');
    while (const size_t count = list.read(bytes.data(), bytes.size())) all.writer().write({bytes.data(), count});
  }
  all.finish();
  log_info("{} lists the lines that are left out", (fs::path(run.options.run) / run_files::kRejects).string());
}

void open_data(RunSetup& run) {
  run.data = open_training_data(run.options.data, run.folder(), run.options.train.batch_tokens.value_or(0), run.options.seed_value(),
                                run.kept_vocabularies);
  run.state.corpus_fingerprint = run.data.fingerprint;
  list_rejects(run);
}

void make_model(RunSetup& run) {
  const Options& options = run.options;
  const VocabularySizes sizes = sizes_of(run.data.vocabularies);
  require_memory_for_model(options, sizes);
  run.model = std::make_shared<Transformer>(options.model, sizes, options.seed_value());
  run.model->to(at::Device(options.device));
  run.model->train();
  run.optimizer = std::make_unique<Optimizer>(FlatParameters(trained_parameters(*run.model)), options.train, run.model->parameter_ranges());
}

/// Measures `train.batch_tokens: auto`, once: the number found is part of the run's configuration from then on.
void choose_batch_tokens(RunSetup& run, const Rules& rules) {
  require_measurable_memory(run.options, rules);
  TrainOptions& train = run.options.train;
  if (!train.batch_tokens.value) {
    const LossFunction loss = transformer_loss(run.model, train, run.options.device);
    const MemoryFit fit = fit_batch_to_memory(loss, *run.optimizer, run.options.data.max_length, run.model->sizes());
    log_info("batch_tokens: auto: {} tokens ({:.1f} KiB each, {:.1f} GiB free)", fit.batch_tokens,
             static_cast<double>(fit.bytes_per_token) / 1024, static_cast<double>(fit.available) / (1 << 30));
    train.batch_tokens = fit.batch_tokens;
  }
  run.data.plan.batch_tokens = *train.batch_tokens.value;
}

/// Loads the newest checkpoint of the run, or train.init_from, or begins. Returns a note if kept validation scores are of another search.
std::string find_start(RunSetup& run, const Rules& rules) {
  Options& options = run.options;
  run.is_resumed = !run.replacement && !newest_checkpoint_of(options.run).empty();
  std::optional<ResumePoint> point = find_starting_point(options, run.replacement != nullptr, rules);
  if (point) run.damaged = point->damaged;
  run.kept_vocabularies = kept_vocabularies(point, options.data, rules);
  open_data(run);
  make_model(run);
  if (point) run.state = start_from(*point, run.data, *run.model, options.train.reset);
  choose_batch_tokens(run, rules);
  choose_schedule(options, run.data, point);
  if (!point) return "";
  restore(*run.optimizer, *point, run.is_resumed ? std::vector<std::string>() : options.train.reset);
  if (!run.is_resumed) log_info("starting from {}", point->path);
  return note_of_other_search(*point, options);
}

/// Goes on with the matrix products that the run began with, as far as this machine has them, and warns of those that it lacks.
void choose_products(RunSetup& run) {
  if (run.options.device != "cpu") return;
  Products& products = run.state.products;
  if (const std::string note = resume_with(products); !note.empty()) log_warning("{}: {}", run.options.run, note);
  products = products_in_use();
  const bool rounds = factor_precision(run.options.train.precision, run.options.device) == Precision::kBf16;
  if (!rounds) products.bf16.clear();
}

void open_evaluation_sets(RunSetup& run, std::optional<Scorer> scorer, const std::string& note_on_search) {
  const Options& options = run.options;
  run.validation_sets = load_evaluation_sets(options.data.valid, options.data, run.data);
  if (!run.validation_sets.empty()) {
    fit_to_validation_set(run.state, validation_fingerprint(run.validation_sets.front(), options.translate.joiner));
    if (run.state.scores.validations > 0 && !note_on_search.empty()) log_warning("{}", note_on_search);
  }
  run.test_sets = load_evaluation_sets(options.data.test, options.data, run.data);
  run.validator = std::make_unique<Validator>(run.model, run.data.vocabularies, options, std::move(scorer));
}

void warn_of_precision(const TrainOptions& train, const std::string& device) {
  if (train.precision == Precision::kBf16 && device == "cpu" && !bf16_is_faster())
    log_warning("train.precision is bf16, and this processor multiplies fp32 faster; auto takes the faster one");
  if (train.precision == Precision::kBf16x3 && factor_precision(train.precision, device) == Precision::kFp32)
    log_warning("train.precision is bf16x3, and only processors with tiles (AMX) have products for it: fp32 is used");
}

}  // namespace

RunSetup set_up_run(const Configuration& given) {
  RunSetup run;
  run.options = given.options;
  Options& options = run.options;
  require_trainable(options, given.rules);
  std::optional<Scorer> scorer = find_scorer(options);
  run.lock = std::make_unique<RunLock>(options.run);
  if (prepare_run_folder(options)) run.replacement = std::make_unique<RunReplacement>(options);
  options.train.precision = training_precision(options.train.precision, options.device);  // `auto` counts for new runs only
  log_to_file((fs::path(run.folder()) / run_files::kLog).string());
  const std::string note_on_search = find_start(run, given.rules);
  choose_products(run);
  open_evaluation_sets(run, std::move(scorer), note_on_search);
  return run;
}

void log_setup(const RunSetup& run) {
  const Options& options = run.options;
  const TrainOptions& train = options.train;
  log_info("{}: {} parameters, {}, device {}, {}", options.run, run.optimizer->num_parameters(), counted(at::get_num_threads(), "thread"),
           options.device, name_of(factor_precision(train.precision, options.device)));
  warn_of_precision(train, options.device);
  log_info("effective batch: {} tokens ({} a batch x {} an update)", *train.batch_tokens.value * train.update_freq,
           *train.batch_tokens.value, train.update_freq == 1 ? "1 batch" : fmt::format("{} batches", train.update_freq));
  const EpochSize epoch = epoch_size(run.data.plan);
  const double updates = updates_per_epoch(train, run.data);
  log_info("an epoch: {} sentence pairs, {} source and {} target tokens, about {:.0f} updates", epoch.pairs, epoch.src_tokens,
           epoch.tgt_tokens, updates);
  for (const std::string& warning : {warning_of_no_end(train), warning_of_no_validation(options.data)})
    if (!warning.empty()) log_info("{}", warning);
  if (const std::string warning = warning_of_warmup(train, updates, run.state); !warning.empty()) log_warning("{}", warning);
  if (run.is_resumed)
    log_info("going on after step {} (epoch {}, batch {})", run.state.step, run.state.position.epoch + 1, run.state.position.batch);
}

}  // namespace lacuna

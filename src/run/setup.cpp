#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"
#include "data/batch_maker.h"
#include "kernels/cpu_target.h"
#include "model/precision.h"
#include "ranks/stage.h"
#include "run/joint_start.h"
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

/// Opens the data of a rank in `folder`, with the vocabularies that it is given or else makes.
TrainingData opened_data(const RunSetup& run, const std::string& folder, const std::optional<Vocabularies>& vocabularies) {
  return open_training_data(run.options.data, folder, run.options.train.batch_tokens.value_or(0), run.options.seed_value(), vocabularies);
}

/// Opens the data at rank 0, which makes vocabularies and caches of tokens, and then at the others: in its folder or, where they do not see
/// that, in one of their machine's own.
void open_data(RunSetup& run) {
  Group& group = run.group;
  at_first(group, [&] {
    run.data = opened_data(run, run.folder(), run.kept_vocabularies);
    list_rejects(run);
  });
  const Vocabularies vocabularies = shared_vocabularies(group, run.data.vocabularies);
  if (!group.is_alone()) {
    const std::string start = group.broadcast(run.lock ? run.lock->start() : "");
    const std::string place = group.broadcast(fs::path(run.folder()).lexically_relative(run.options.run).string());
    const bool sees_run = !run.options.data.cache.empty() || is_folder_of(start, run.options.run);
    run.own_cache = std::make_unique<OwnCache>(group, sees_run);
    const std::string folder = sees_run ? (fs::path(run.options.run) / place).string() : run.own_cache->folder();
    on_all_ranks(group, [&] {
      if (run.own_cache->is_maker()) run.data = opened_data(run, folder, vocabularies);
    });
    on_all_ranks(group, [&] {
      if (!group.is_first() && !run.own_cache->is_maker()) run.data = opened_data(run, folder, vocabularies);
    });
  }
  run.state.corpus_fingerprint = run.data.fingerprint;
}

void make_model(RunSetup& run) {
  const Options& options = run.options;
  const VocabularySizes sizes = sizes_of(run.data.vocabularies);
  require_memory_for_model(options, sizes, run.ranks_here);
  run.model = std::make_shared<Transformer>(options.model, sizes, options.seed_value());
  run.model->to(at::Device(options.device));
  run.model->train();
  run.optimizer =
      std::make_unique<Optimizer>(FlatParameters(trained_parameters(*run.model)), options.train, run.model->parameter_ranges(), run.group);
}

/// Measures `train.batch_tokens: auto`, once: the number found is part of the run's configuration from then on.
void choose_batch_tokens(RunSetup& run) {
  TrainOptions& train = run.options.train;
  if (!train.batch_tokens.value) {
    const uint64_t available = on_all_ranks(
        run.group, [&] { return available_memory() / static_cast<uint64_t>(run.ranks_here); });  // before any of them takes some
    const LossFunction loss = transformer_loss(run.model, train, run.options.device);
    const MemoryFit fit = on_all_ranks(
        run.group, [&] { return fit_batch_to_memory(loss, *run.optimizer, run.options.data.max_length, run.model->sizes(), available); });
    int64_t least = fit.batch_tokens;
    for (const std::string& tokens : run.group.gather_to_all(std::to_string(fit.batch_tokens)))
      least = std::min<int64_t>(least, std::stoll(tokens));
    log_info("batch_tokens: auto: {} tokens ({:.1f} KiB each, {:.1f} GiB free{})", least, static_cast<double>(fit.bytes_per_token) / 1024,
             static_cast<double>(fit.available) / (1 << 30), run.group.is_alone() ? "" : " for each rank of this machine");
    train.batch_tokens = least;
  }
  run.data.plan.batch_tokens = *train.batch_tokens.value;
}

std::string batches_text(int64_t batches) {
  return batches == 1 ? "1 batch" : fmt::format("{} batches", batches);
}

/// Keeps the number of batches that the updates of a run have, or counts those of a new one: what its ranks do at once, train.update_freq
/// times. Throws ConfigError if there are more ranks than batches.
void choose_batches_per_update(RunSetup& run) {
  int64_t& batches = run.state.batches_per_update;
  const int64_t ranks = run.group.size();
  if (!run.is_resumed) batches = ranks * run.options.train.update_freq;
  if (batches == 0) batches = run.options.train.update_freq;  // of a version in which a single process served a run
  if (ranks > batches)
    throw ConfigError(
        fmt::format("{} ranks are to go on with {}, whose updates have {}: start at most {}, or set `run` to another folder to begin "
                    "anew with more batches an update",
                    ranks, run.options.run, batches_text(batches), counted(batches, "rank")));
}

/// Loads the newest checkpoint of the run, or train.init_from, or begins. Returns a note if kept validation scores are of another search.
std::string find_start(RunSetup& run, const Rules& rules) {
  Options& options = run.options;
  Group& group = run.group;
  std::optional<ResumePoint> point;
  run.is_resumed = from_first(group, [&] {
                     const bool is_resumed = !run.replacement && !newest_checkpoint_of(options.run).empty();
                     point = find_starting_point(options, run.replacement != nullptr, rules);
                     return std::string(is_resumed ? "resumed" : "");
                   }) == "resumed";
  if (point) run.damaged = point->damaged;
  point = shared_point(group, std::move(point));
  on_all_ranks(group, [&] { run.kept_vocabularies = kept_vocabularies(point, options.data, rules); });
  open_data(run);
  on_all_ranks(group, [&] {
    make_model(run);
    if (point) run.state = start_from(*point, run.data, *run.model, options.train.reset);
    choose_batches_per_update(run);
    require_measurable_memory(options, rules);
  });
  choose_batch_tokens(run);
  choose_schedule(options, run.data, run.state.batches_per_update, point);
  if (!point) return "";
  on_all_ranks(group, [&] { restore(*run.optimizer, *point, run.is_resumed ? std::vector<std::string>() : options.train.reset); });
  if (!run.is_resumed) log_info("starting from {}", point->path);
  return note_of_other_search(*point, options);
}

/// Goes on with the matrix products that the run began with, as far as this machine has them, and warns of those that it lacks. All ranks
/// take what rank 0 takes.
void choose_products(RunSetup& run) {
  if (run.options.device != "cpu") return;
  Products& products = run.state.products;
  const std::string note = run.group.is_first() ? resume_with(products) : "";
  if (!note.empty()) log_warning("{}: {}", run.options.run, note);
  const std::string of_first = run.group.broadcast(products_in_use().fp32);
  if (!run.group.is_first()) resume_with({.fp32 = of_first, .instruction_set = "", .bf16 = ""});
  products = products_in_use();
  const bool rounds = factor_precision(run.options.train.precision, run.options.device) == Precision::kBf16;
  if (!rounds) products.bf16.clear();
  require_same_products(run.group, products);
}

void open_evaluation_sets(RunSetup& run, std::optional<Scorer> scorer, const std::string& note_on_search) {
  const Options& options = run.options;
  on_all_ranks(run.group, [&] {
    run.validation_sets = load_evaluation_sets(options.data.valid, options.data, run.data);
    run.test_sets = load_evaluation_sets(options.data.test, options.data, run.data);
  });
  if (!run.validation_sets.empty()) {
    fit_to_validation_set(run.state, validation_fingerprint(run.validation_sets.front(), options.translate.joiner));
    if (run.state.scores.validations > 0 && !note_on_search.empty()) log_warning("{}", note_on_search);
  }
  run.validator = std::make_unique<Validator>(run.model, run.data.vocabularies, options, std::move(scorer), run.group);
}

void warn_of_precision(const TrainOptions& train, const std::string& device) {
  if (train.precision == Precision::kBf16 && device == "cpu" && !bf16_is_faster())
    log_warning("train.precision is bf16, and this processor multiplies fp32 faster; auto takes the faster one");
  if (train.precision == Precision::kBf16x3 && factor_precision(train.precision, device) == Precision::kFp32)
    log_warning("train.precision is bf16x3, and only processors with tiles (AMX) have products for it: fp32 is used");
}

}  // namespace

RunSetup set_up_run(const Configuration& given, Group& group, std::chrono::seconds patience) {
  RunSetup run(group);
  run.options = given.options;
  run.ranks_here = ranks_on_machine(group);
  if (const CorpusOptions* const stream = given.options.data.stream(); stream != nullptr && !group.is_alone())
    throw ConfigError(given.rules.place({"data.train"}) +
                      fmt::format("data.train: {} is a stream, which one process reads, and {} ranks serve this run; start one, with more "
                                  "threads, or name files",
                                  stream->tsv, group.size()));
  Options& options = run.options;
  require_same_start(group, options);
  on_all_ranks(group, [&] {
    if (group.is_first()) return require_trainable(options, given.rules);
    require_sets(options.data, given.rules);
  });
  std::optional<Scorer> scorer;
  const std::string chosen = from_first(group, [&] {
    scorer = find_scorer(options);
    run.lock = std::make_unique<RunLock>(options.run, patience);
    if (prepare_run_folder(options)) run.replacement = std::make_unique<RunReplacement>(options);
    options.train.precision = training_precision(options.train.precision, options.device);  // `auto` counts for new runs only
    log_to_file((fs::path(run.folder()) / run_files::kLog).string(), run.lock->is_alone_there());
    return to_yaml(options);
  });
  if (!group.is_first()) options.train = options_from_yaml(chosen, "the configuration of rank 0").train;
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
  const int64_t batches = run.state.batches_per_update;
  const std::string of_update = batches_text(batches) + " an update";
  log_info("effective batch: {} tokens ({} a batch x {})", *train.batch_tokens.value * batches, *train.batch_tokens.value, of_update);
  if (!run.group.is_alone())
    log_info("{} ranks serve the run: {}: {}", run.group.size(), of_update, shares_text(batches, run.group.size()));
  const double updates = updates_per_epoch(batches, run.data);
  if (run.data.plan.stream) {
    log_info("{} is read as it comes, to its end; an epoch is a block of {} lines, which are shuffled", run.data.plan.stream->name(),
             run.data.plan.stream->block_lines());
  } else {
    const EpochSize epoch = epoch_size(run.data.plan);
    log_info("an epoch: {} sentence pairs, {} source and {} target tokens, about {:.0f} updates", epoch.pairs, epoch.src_tokens,
             epoch.tgt_tokens, updates);
  }
  for (const std::string& warning : {run.data.plan.stream ? "" : warning_of_no_end(train), warning_of_no_validation(options.data)})
    if (!warning.empty()) log_info("{}", warning);
  if (const std::string warning = warning_of_warmup(train, updates, run.state); !warning.empty()) log_warning("{}", warning);
  if (run.is_resumed)
    log_info("going on after step {} (epoch {}, batch {})", run.state.step, run.state.position.epoch + 1, run.state.position.batch);
}

}  // namespace lacuna

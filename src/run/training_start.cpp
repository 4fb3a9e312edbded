#include "run/training_start.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "data/corpus_reader.h"
#include "text/writing_system.h"
#include "train/auto_batch.h"
#include "train/run_replacement.h"

namespace lacuna {
namespace {

/// The keys by which a rule about one of the corpora under `key` finds its place: the corpus may be one of a list, or the only one.
std::vector<std::string> keys_of_corpus(const std::string& key, size_t index) {
  const std::string item = fmt::format("{}[{}]", key, index);
  return {item + ".name", key + ".name", item, key};
}

const char* name_of_interrupt(int signal) {
  if (signal == SIGHUP) return "SIGHUP (the terminal was closed)";
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

/// Their names are those of files and of scores.
void require_different_names(const std::string& key, const std::vector<CorpusOptions>& corpora, const Rules& rules) {
  std::set<std::string> names;
  for (size_t i = 0; i < corpora.size(); ++i)
    rules.require(names.insert(name_of(corpora[i])).second, keys_of_corpus(key, i),
                  fmt::format("{}: two sets to score are called \"{}\", one of them {}; give it a name of its own: "
                              "{{name: NAME, ...}}",
                              key, name_of(corpora[i]), corpora[i].files_text()));
}

void require_same_pieces(const Vocabulary& ours, const Vocabulary& theirs, const std::string& side, const std::string& place) {
  if (!vocabulary_difference(ours, theirs, side).empty())
    throw DataError("the " + side + " vocabulary of " + place +
                    ", from which training would go on, is not that of this configuration. Use its vocabulary (name none in `data`, or the "
                    "same file)");
}

/// Throws ConfigError if the configuration names no run folder, or one that cannot be; MachineError if nothing can be written there.
void require_run_folder(const Options& options, const Rules& rules) {
  rules.require(!options.run.empty(), {"run"}, "run is empty; expected the folder that training writes to: run: runs/mine");
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(options.run, error).lexically_normal();
  while (!std::filesystem::exists(std::filesystem::symlink_status(there, error)) && there.has_relative_path()) there = there.parent_path();
  rules.require(std::filesystem::is_directory(there, error), {"run"},
                "run is " + options.run + ", and " + there.string() + " is no folder; name another");
  if (access(there.c_str(), W_OK | X_OK) != 0)
    throw MachineError(rules.place({"run"}) + "run is " + options.run + ", and nothing can be written to " + there.string() + ": " +
                       std::strerror(errno));
}

/// Throws ConfigError if learned positions end before the longest sentence that `data` lets in.
void require_room_for_sentences(const Options& options, const Rules& rules) {
  const int64_t longest = options.data.max_length + 1, room = options.model.max_positions;
  rules.require(
      options.model.positions != Positions::kLearned || longest <= room, {"model.max_positions", "data.max_length"},
      fmt::format("model.max_positions is {}, and data.max_length {} lets sentences of {} tokens in, end of sentence counted; make "
                  "one of them fit the other",
                  room, options.data.max_length, longest));
}

/// Throws ConfigError for learning rates that no training wants: one said where the noam schedule takes a factor, a least one above `lr`.
/// Not for a run that goes on: it does so as it is.
void require_learning_rates(const Options& options, bool is_resumed, const Rules& rules) {
  constexpr double kLeastFactor = 0.01;
  if (is_resumed) return;
  const TrainOptions& train = options.train;
  const bool is_noam = train.schedule == Schedule::kNoam;
  rules.require(!is_noam || train.lr >= kLeastFactor, {"train.lr", "train.schedule"},
                fmt::format("train.lr is {}; with the noam schedule it is a factor, as a rule 0.5 to 2: the learning rate peaks at "
                            "train.lr / sqrt(model.d_model * train.warmup_steps)",
                            train.lr));
  rules.require(
      is_noam || train.min_lr <= train.lr, {"train.min_lr", "train.lr"},
      fmt::format("train.min_lr is {}; expected at most train.lr, which is {}: lower the one or raise the other", train.min_lr, train.lr));
}

/// Throws ConfigError for a name of a corpus that leads out of the run folder, and for a target language that is no code; the latter
/// not for a run that goes on.
void require_names(const Options& options, bool is_resumed, const Rules& rules) {
  const DataOptions& data = options.data;
  for (const auto& [key, corpora] : {std::pair("data.train", &data.train), {"data.valid", &data.valid}, {"data.test", &data.test}})
    for (size_t i = 0; i < corpora->size(); ++i) {
      const std::string& name = (*corpora)[i].name;
      rules.require(name.find('/') == std::string::npos && name != "." && name != "..", keys_of_corpus(key, i),
                    fmt::format("{}: a corpus has the name \"{}\", by which files in the run folder are called; expected one without \"/\"",
                                key, name));
    }
  if (is_resumed) return;  // with the language it began with
  const std::string trouble = trouble_of_language_code(data.tgt_lang);
  rules.require(trouble.empty(), {"data.tgt_lang"}, "data.tgt_lang is \"" + data.tgt_lang + "\"" + trouble);
}

}  // namespace

std::string in_words(TrainingEnd end, const TrainingState& state, const TrainOptions& options) {
  switch (end) {
    case TrainingEnd::kMaxSteps:
      return fmt::format("step {} >= train.max_steps ({})", state.step, options.max_steps);
    case TrainingEnd::kMaxEpochs:
      return fmt::format("epoch {} >= train.max_epochs ({})", state.position.epoch, options.max_epochs);
    case TrainingEnd::kMaxHours:
      return fmt::format("{:.4g} hours >= train.max_hours ({:.4g})", state.hours, options.max_hours);
    case TrainingEnd::kNoImprovement:
      return fmt::format("step {}: no better {} in {} since step {}, and train.patience is {} (a higher one goes on)", state.step,
                         score_name(options.metric), counted(state.scores.since_best, "validation"), state.scores.best_step,
                         options.patience);
    case TrainingEnd::kInterrupted:
      return fmt::format("step {}: interrupted by {}{}", state.step, name_of_interrupt(interrupt_signal()),
                         state.step > 0 ? ", and saved; the same command goes on from there" : "");
  }
  return "";
}

void require_trainable(const Options& options, const Rules& rules) {
  require_run_folder(options, rules);
  require_room_for_run(options.run);
  require_room_for_sentences(options, rules);
  const bool is_resumed = !newest_checkpoint_of(options.run).empty() && !replaces_run(options);
  require_learning_rates(options, is_resumed, rules);
  require_names(options, is_resumed, rules);
  require_sets(options.data, rules);
}

void require_measurable_memory(const Options& options, const Rules& rules) {
  rules.require(options.train.batch_tokens.value || options.device == "cpu", {"train.batch_tokens", "device"},
                "train.batch_tokens is auto, which measures the CPU's memory; give a number for " + options.device);
}

void require_memory_for_model(const Options& options, const VocabularySizes& sizes) {
  if (options.device != "cpu") return;
  constexpr double kBytesOfParameter = 16;
  const ModelOptions& model = options.model;
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double width = number(model.d_model), square = width * width;
  const double rows = number(sizes.tgt) + (model.tie_embeddings == TieEmbeddings::kAll ? 0 : number(sizes.src)) +
                      (model.tie_embeddings == TieEmbeddings::kNone ? number(sizes.tgt) : 0) +
                      (model.positions == Positions::kLearned ? 2 * number(model.max_positions) : 0);
  const double parameters = rows * width + number(model.encoder_layers) * (4 * square + 2 * width * number(model.encoder_ff())) +
                            number(model.decoder_layers) * (8 * square + 2 * width * number(model.decoder_ff()));
  const auto available = static_cast<double>(available_memory());
  const auto mebibytes = [](double bytes) { return bytes / 1024 / 1024; };
  if (parameters * kBytesOfParameter > available)
    throw MachineError(fmt::format(
        "the model has about {:.0f} million parameters, which take {:.0f} MiB in training without any batch; {:.0f} MiB are free. Make it "
        "smaller (model.d_model, d_ff, encoder_layers, decoder_layers, max_positions, data.vocab_size), or free some memory",
        parameters / 1e6, mebibytes(parameters * kBytesOfParameter), mebibytes(available)));
}

void require_sets(const DataOptions& data, const Rules& rules) {
  for (const CorpusOptions& corpus : data.train)
    for (const auto& [file, what] : corpus.files()) require_corpus_file(file, what + " of data.train");
  for (const auto& [key, sets] : {std::pair("data.valid", &data.valid), std::pair("data.test", &data.test)}) {
    require_different_names(key, *sets, rules);
    for (const CorpusOptions& corpus : *sets) {
      bool are_files = true;  // a pipe is read once
      for (const auto& [file, what] : corpus.files()) {
        require_readable_file(file, fmt::format("{} of {}", what, key));
        std::error_code error;
        are_files = are_files && std::filesystem::is_regular_file(file, error);
      }
      if (are_files) count_pairs(corpus);  // for its errors
    }
  }
}

std::optional<ResumePoint> find_starting_point(const Options& options, bool starts_anew, const Rules& rules) {
  std::optional<ResumePoint> point;
  if (!starts_anew) point = find_resume_point(options.run);
  if (point || options.train.init_from.empty()) return point;
  point = initial_point(options.train);
  fit_to_batches(*point, options);
  if (const auto end = end_of(point->state, point->state.hours, options.train))
    throw ConfigError(rules.place({"train.init_from"}) + "train.init_from: " + point->path +
                      " stands where training ends: " + in_words(*end, point->state, options.train) +
                      ". Set train.reset: [optimizer, lr, data, best] to start anew with its weights, or let training end later");
  return point;
}

std::optional<Vocabularies> vocabularies_kept(const std::optional<ResumePoint>& point, const DataOptions& data, const Rules& rules) {
  if (!point || !data.trains_vocabularies() || !point->checkpoint.vocabularies.src->is_sentencepiece()) return {};
  const DataOptions& theirs = point->options.data;
  for (const std::string& symbol : data.spm_symbols)
    for (const VocabularyPtr& vocabulary : {point->checkpoint.vocabularies.src, point->checkpoint.vocabularies.tgt})
      rules.require(vocabulary->id_of(symbol) != kUnk, {"data.spm_symbols"},
                    "data.spm_symbols holds \"" + symbol + "\", which the vocabulary of " + point->path +
                        " has not; remove it, or train a model with it from the start");
  if (theirs.vocab_size != data.vocab_size || theirs.spm_byte_fallback != data.spm_byte_fallback ||
      theirs.shared_vocab != data.shared_vocab || theirs.spm_type != data.spm_type)
    log_info(
        "{} brings its own vocabulary, of {} source and {} target pieces: data.vocab_size, shared_vocab, spm_type and spm_byte_fallback "
        "are those of one that is trained",
        point->path, point->checkpoint.vocabularies.src->size(), point->checkpoint.vocabularies.tgt->size());
  return point->checkpoint.vocabularies;
}

TrainingState start_from(ResumePoint& point, const TrainingData& data, Transformer& model, const std::vector<std::string>& reset) {
  require_same_pieces(*data.vocabularies.src, *point.checkpoint.vocabularies.src, "source", point.path);
  require_same_pieces(*data.vocabularies.tgt, *point.checkpoint.vocabularies.tgt, "target", point.path);
  fit_to_attention(point, model, reset);
  load_weights(model, point.checkpoint.weights, point.path);  // for its words, where they do not fit
  TrainingState state = point.state;
  fit_to_corpus(state, data.fingerprint, reset, point.path);
  return state;
}

std::vector<EvaluationSet> load_evaluation_sets(const std::vector<CorpusOptions>& corpora, const DataOptions& options,
                                                const TrainingData& data) {
  std::vector<EvaluationSet> sets;
  sets.reserve(corpora.size());
  for (const CorpusOptions& corpus : corpora)
    sets.push_back(load_evaluation_set(corpus, options, data.vocabularies, data.plan.batch_tokens));
  for (const EvaluationSet& set : sets)
    if (options.tgt_lang.empty() && has_no_spaces_between_words(set.tgt_lines))
      log_warning(
          "{}: its target side is Chinese or Japanese, without spaces between words, and BLEU takes words to end at spaces, as "
          "data.tgt_lang is empty: set it to zh or ja",
          set.name);
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

std::string note_of_no_validation(const DataOptions& data) {
  if (!data.valid.empty()) return "";
  return "data.valid is empty: nothing is validated, so no checkpoint is the best one, and training does not stop early";
}

std::string note_of_warmup(const TrainOptions& train, double updates_per_epoch, const TrainingState& start) {
  double end = std::numeric_limits<double>::infinity();
  if (train.max_steps > 0) end = static_cast<double>(train.max_steps);
  if (train.max_epochs > 0) {
    const auto epochs = static_cast<double>(train.max_epochs - start.position.epoch);
    end = std::min(end, static_cast<double>(start.step) + epochs * updates_per_epoch);
  }
  if (start.step >= train.warmup_steps || end >= static_cast<double>(train.warmup_steps)) return "";
  return fmt::format("train.warmup_steps is {} and the run ends at about step {:.0f}: the learning rate never reaches its peak",
                     train.warmup_steps, end);
}

}  // namespace lacuna

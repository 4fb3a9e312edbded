#include "run/requirements.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "attention/alignment_guide.h"
#include "base/error.h"
#include "base/files.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "data/corpus_reader.h"
#include "data/evaluation_set.h"
#include "train/auto_batch.h"
#include "train/resume.h"
#include "train/run_takeover.h"

namespace lacuna {
namespace {

/// Returns the keys by which a rule about one of the corpora under `key` finds its place: the corpus may be one of a list, or the only one.
std::vector<std::string> keys_of_corpus(const std::string& key, size_t index) {
  const std::string item = fmt::format("{}[{}]", key, index);
  return {item + ".name", key + ".name", item, key};
}

/// Throws ConfigError if two sets have the same name, which names files and scores.
void require_different_names(const std::string& key, const std::vector<CorpusOptions>& corpora, const Rules& rules) {
  std::set<std::string> names;
  for (size_t i = 0; i < corpora.size(); ++i)
    rules.require(names.insert(name_of(corpora[i])).second, keys_of_corpus(key, i),
                  fmt::format("{}: two sets to score are called \"{}\", one of them {}; give it a name of its own: "
                              "{{name: NAME, ...}}",
                              key, name_of(corpora[i]), corpora[i].files_text()));
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

/// Throws ConfigError for a corpus' name that leads out of the run folder and, unless a run goes on, a target language that is no code.
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
  const std::string trouble = language_code_error(data.tgt_lang);
  rules.require(trouble.empty(), {"data.tgt_lang"}, "data.tgt_lang is \"" + data.tgt_lang + "\"" + trouble);
}

}  // namespace

namespace {

/// Throws ConfigError if alignment is to be guided and no corpus has links. A section that Lacuna has written itself, with every key of
/// `train` and the default's values, asks for nothing.
void require_links(const Options& options, const Rules& rules) {
  const GuidedAlignmentOptions& guided = options.train.guided_alignment;
  const GuidedAlignmentOptions usual;
  if (options.is_guided() || guided.weight == 0) return;
  const std::string section = "train.guided_alignment";
  const std::vector<std::string> keys = {section + ".weight", section + ".layer", section + ".head"};
  const bool is_usual = guided.weight == usual.weight && guided.layer.value == usual.layer.value && guided.head == usual.head;
  const bool is_of_a_dump = is_usual && !rules.place({"train.rank_timeout"}).empty();
  rules.require(rules.place(keys).empty() || is_of_a_dump, keys,
                "train.guided_alignment needs links between words, and no corpus of data.train has any: make them with `lacuna align` and "
                "name the file, data.train: [{src: ..., tgt: ..., links: FILE}], or the column of a tsv, links_column; or leave "
                "train.guided_alignment out, or set its weight to 0");
}

/// Throws ConfigError if links are to guide a head whose attention has no alignment loss.
void require_guidable(const Options& options, const Rules& rules) {
  if (!options.is_guided()) return;
  const AlignmentSource guided = options.alignment_source();
  const AttentionPlan plan = resolve_attention(options.model);
  const std::string reason = reason_not_to_guide(*plan.cross.at(static_cast<size_t>(guided.layer)).type);
  rules.require(reason.empty(), {"train.guided_alignment.layer", "model.attention.cross", "model.attention"},
                fmt::format("train.guided_alignment is to guide cross attention of decoder layer {}, and {}. Choose another layer "
                            "(train.guided_alignment.layer), softmax there (model.attention.cross: {{layers: {{{}: softmax}}}}), or "
                            "train.guided_alignment.weight: 0",
                            guided.layer, reason, guided.layer));
}

}  // namespace

void require_trainable(const Options& options, const Rules& rules) {
  require_run_folder(options, rules);
  require_room_for_run(options.run);
  require_room_for_sentences(options, rules);
  const bool is_resumed = !newest_checkpoint_of(options.run).empty() && !replaces_run(options);
  require_learning_rates(options, is_resumed, rules);
  require_names(options, is_resumed, rules);
  if (!is_resumed) require_links(options, rules);
  require_guidable(options, rules);
  require_sets(options.data, rules);
}

void require_measurable_memory(const Options& options, const Rules& rules) {
  rules.require(options.train.batch_tokens.value || options.device == "cpu", {"train.batch_tokens", "device"},
                "train.batch_tokens is auto, which measures the CPU's memory; give a number for " + options.device);
}

void require_memory_for_model(const Options& options, const VocabularySizes& sizes, int64_t processes) {
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
  const double available = static_cast<double>(available_memory()) / static_cast<double>(processes);
  const auto mebibytes = [](double bytes) { return bytes / 1024 / 1024; };
  if (parameters * kBytesOfParameter > available)
    throw MachineError(
        fmt::format("the model has about {:.0f} million parameters, which take {:.0f} MiB in training without any batch; {:.0f} MiB are "
                    "free{}. Make it "
                    "smaller (model.d_model, d_ff, encoder_layers, decoder_layers, max_positions, data.vocab_size), or free some memory",
                    parameters / 1e6, mebibytes(parameters * kBytesOfParameter), mebibytes(available),
                    processes > 1 ? fmt::format(" for each of the {} ranks here", processes) : ""));
}

void require_sets(const DataOptions& data, const Rules& rules) {
  for (const CorpusOptions& corpus : data.train) {
    if (corpus.stream) continue;
    for (const auto& [file, what] : corpus.files()) require_corpus_file(file, what + " of data.train");
    if (!corpus.links.empty()) require_corpus_file(corpus.links, "word alignments of data.train");
  }
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

}  // namespace lacuna

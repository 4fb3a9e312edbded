#include "run/joint_start.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <sched.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/resources.h"
#include "base/spelling.h"
#include "config/load.h"
#include "config/read_options.h"
#include "ranks/gpu_group.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Names of what all ranks must have in common, each with its value.
using Facts = std::map<std::string, std::string>;

constexpr size_t kMostShown = 5;
constexpr char kProgram[] = "the program";

/// Returns a configuration in which everything that is each machine's own is the default.
Options common_part(Options options) {
  const Options usual;
  options.threads = usual.threads;
  options.sacrebleu = usual.sacrebleu;
  options.data.cache = usual.data.cache;
  if (options.device.starts_with("cuda")) options.device = "cuda";
  for (auto* corpora : {&options.data.train, &options.data.valid, &options.data.test})
    for (CorpusOptions& corpus : *corpora)
      for (std::string* file : {&corpus.src, &corpus.tgt, &corpus.tsv, &corpus.links})
        if (!file->empty()) *file = "a file";
  for (std::string* file : {&options.data.spm_model, &options.data.src_spm_model, &options.data.tgt_spm_model, &options.data.vocab,
                            &options.data.src_vocab, &options.data.tgt_vocab})
    if (!file->empty()) *file = "a file";
  return options;
}

/// Adds the hash of a file's contents under the key that names it. A pipe is read once, and not for this.
void add_file(Facts& facts, const std::string& key, const std::string& file) {
  std::error_code error;
  if (file.empty()) return;
  std::string& value = facts[key + " (contents)"];
  if (fs::is_regular_file(file, error))
    value = hash_of_files({file});
  else
    value = fs::exists(file, error) ? "no regular file" : "there is no " + file;
}

Facts facts_of(const Options& options) {
  Facts facts = {{kProgram, LACUNA_VERSION}};
  const ConfigNode common = write_options(common_part(options));
  for (const ConfigDifference& one : differences(ConfigNode(), common)) facts[one.key] = one.second;
  const DataOptions& data = options.data;
  for (const auto& [key, corpora] : {std::pair("data.train", &data.train), {"data.valid", &data.valid}, {"data.test", &data.test}})
    for (size_t i = 0; i < corpora->size(); ++i) {
      const CorpusOptions& corpus = (*corpora)[i];
      const std::string place = fmt::format("{}.{}.", key, i);
      add_file(facts, place + "src", corpus.src);
      add_file(facts, place + "tgt", corpus.tgt);
      add_file(facts, place + "tsv", corpus.tsv);
      add_file(facts, place + "links", corpus.links);
    }
  for (const auto& [key, file] : {std::pair("data.spm_model", &data.spm_model),
                                  {"data.src_spm_model", &data.src_spm_model},
                                  {"data.tgt_spm_model", &data.tgt_spm_model},
                                  {"data.vocab", &data.vocab},
                                  {"data.src_vocab", &data.src_vocab},
                                  {"data.tgt_vocab", &data.tgt_vocab}})
    add_file(facts, key, *file);
  return facts;
}

std::string packed_facts(const Facts& facts) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : facts) texts.insert(texts.end(), {name, value});
  return packed(texts);
}

Facts unpacked_facts(const std::string& bytes) {
  Facts facts;
  const std::vector<std::string> texts = unpacked(bytes);
  for (size_t i = 0; i + 1 < texts.size(); i += 2) facts[texts[i]] = texts[i + 1];
  return facts;
}

/// Throws ConfigError for the first rank whose facts are not those of rank 0.
void require_same_facts(Group& group, const Facts& facts, const std::string& advice) {
  const std::vector<std::string> hosts = group.gather(name_of_rank(group)), all = group.gather(packed_facts(facts));
  at_first(group, [&] {
    for (size_t rank = 1; rank < all.size(); ++rank) {
      Facts theirs = unpacked_facts(all[rank]), ours = facts;
      for (const auto& [name, value] : ours) theirs.try_emplace(name);
      std::string text;
      size_t shown = 0;
      for (const auto& [name, value] : theirs)
        if (ours[name] != value && ++shown <= kMostShown)
          text += fmt::format("\n  {}: {} and {}", name, value.empty() ? "nothing" : value, ours[name].empty() ? "nothing" : ours[name]);
      if (shown > kMostShown) text += fmt::format("\n  and {} more", shown - kMostShown);
      if (shown > 0)
        throw ConfigError(fmt::format("{} and {} do not start the same run (there and here):{}\n{}", hosts[rank], hosts[0], text, advice));
    }
  });
}

std::string tensor_bytes(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU).contiguous();
  return {static_cast<const char*>(values.const_data_ptr()), values.nbytes()};
}

std::optional<NamedTensors> shared_if_any(Group& group, const std::optional<NamedTensors>& tensors) {
  if (group.broadcast(tensors ? "1" : "").empty()) return {};
  return shared_tensors(group, tensors ? *tensors : NamedTensors());
}

/// Returns a batch as a JSON array for each sentence pair: its id and the ids of both sides.
std::string bytes_of(const Batch& batch) {
  nlohmann::json pairs = nlohmann::json::array();
  const auto ids = [](const std::vector<TokenId>& all, const RaggedShape& shape, int64_t b) {
    return std::vector<TokenId>(all.begin() + shape.begin(b), all.begin() + shape.begin(b) + shape.length(b));
  };
  for (int64_t b = 0; b < batch.src_shape->num_sentences(); ++b)
    pairs.push_back({batch.src_shape->id(b), ids(batch.src, *batch.src_shape, b), ids(batch.tgt, *batch.tgt_shape, b)});
  return pairs.dump();
}

BatchPtr batch_of(const std::string& bytes) {
  BatchBuilder builder;
  for (const nlohmann::json& pair : nlohmann::json::parse(bytes))
    builder.add(pair.at(1).get<std::vector<TokenId>>(), pair.at(2).get<std::vector<TokenId>>(), pair.at(0).get<int64_t>());
  return builder.take();
}

/// Returns the CPUs that this process may run on, as the system says them.
std::string cpu_mask() {
  cpu_set_t cpus = {};
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return "";
  return {reinterpret_cast<const char*>(&cpus), sizeof cpus};
}

}  // namespace

void speak_as_rank(const Group& group) {
  if (group.is_first()) return;
  set_log_name(name_of_rank(group));
  set_least_log_level(LogLevel::kError);
}

std::unique_ptr<Group> take_gpus(Options& options, const RankPlace& place, Group& group) {
  if (group.is_alone()) return nullptr;
  options.device = device_of_rank(options.device, place);
  const std::vector<std::string> devices = group.gather_to_all(host_name() + " " + options.device);
  if (std::ranges::any_of(devices, [](const std::string& device) { return device.find(" cuda") == device.npos; })) return nullptr;
  const std::string shared = shared_device(devices);
  if (shared.empty()) return join_gpus(group, at::Device(options.device));
  if (group.is_first())
    log_warning("several ranks train on one GPU ({}), and so gradients travel through the CPU's memory; start one process for each GPU",
                shared);
  return nullptr;
}

void require_same_start(Group& group, const Options& options) {
  if (group.is_alone()) return;
  Facts facts = on_all_ranks(group, [&] { return facts_of(options); });
  require_same_facts(group, facts,
                     "All ranks of a run need the same program, configuration and texts: copy rank 0's to that machine, and start again");
}

void require_same_products(Group& group, const Products& products) {
  if (group.is_alone()) return;
  require_same_facts(
      group, {{"products in fp32", products.fp32}, {"products in bf16", products.bf16}, {"instruction set", products.instruction_set}},
      "Their processors multiply in other ways, which round otherwise: use machines of one kind");
}

std::optional<ResumePoint> shared_point(Group& group, std::optional<ResumePoint> point) {
  if (group.is_alone()) return point;
  if (group.broadcast(point ? "1" : "").empty()) return {};
  std::string head;
  if (point)
    head = packed({point->path, point->checkpoint.config_yaml, point->state.to_json(), std::to_string(point->checkpoint.info.step),
                   point->checkpoint.info.uses_ema ? "1" : ""});
  const std::vector<std::string> parts = unpacked(group.broadcast(head));
  if (!point) {
    point.emplace();
    point->path = parts.at(0);
    point->checkpoint.config_yaml = parts.at(1);
    point->checkpoint.info.step = std::stoll(parts.at(3));
    point->checkpoint.info.uses_ema = !parts.at(4).empty();
    point->options = point->checkpoint.options(point->path);
    point->state = TrainingState::from_json(parts.at(2), point->path);
  }
  CheckpointContents& contents = point->checkpoint;
  contents.vocabularies = shared_vocabularies(group, contents.vocabularies);
  contents.weights = shared_tensors(group, contents.weights);
  contents.ema_weights = shared_if_any(group, contents.ema_weights);
  contents.trainer_tensors = shared_if_any(group, contents.trainer_tensors);
  return point;
}

NamedTensors shared_tensors(Group& group, const NamedTensors& tensors) {
  if (group.is_alone()) return tensors;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  NamedTensors shared;
  for (const std::string& name : unpacked(group.broadcast(packed(names)))) {  // one by one: a copy of one is all that it takes beside them
    std::vector<std::string> kind;
    at::Tensor tensor;
    if (group.is_first()) {
      tensor = tensors.at(name);
      kind.push_back(std::to_string(static_cast<int>(tensor.scalar_type())));
      for (const int64_t size : tensor.sizes()) kind.push_back(std::to_string(size));
    }
    kind = unpacked(group.broadcast(packed(kind)));
    const std::string bytes = group.broadcast(group.is_first() ? tensor_bytes(tensor) : "");
    if (!group.is_first()) {
      std::vector<int64_t> sizes;
      for (size_t i = 1; i < kind.size(); ++i) sizes.push_back(std::stoll(kind[i]));
      tensor = at::empty(sizes, at::TensorOptions().dtype(static_cast<at::ScalarType>(std::stoi(kind.at(0)))));
      std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    }
    shared[name] = tensor;
  }
  return shared;
}

std::vector<BatchPtr> gathered_batches(Group& group, const std::vector<BatchPtr>& own) {
  if (group.is_alone()) return own;
  std::vector<std::string> mine;
  for (const BatchPtr& batch : own)
    if (batch) mine.push_back(bytes_of(*batch));
  std::vector<std::vector<std::string>> all;
  for (const std::string& of_rank : group.gather(packed(mine))) all.push_back(unpacked(of_rank));
  std::vector<BatchPtr> batches;
  for (size_t round = 0; std::ranges::any_of(all, [&](const auto& of_rank) { return round < of_rank.size(); }); ++round)
    for (const std::vector<std::string>& of_rank : all)
      if (round < of_rank.size()) batches.push_back(batch_of(of_rank[round]));
  return batches;
}

int agreed_interrupt(Group& group) {
  for (const std::string& signal : group.gather_to_all(std::to_string(interrupt_signal()))) adopt_interrupt(std::stoi(signal));
  return interrupt_signal();
}

Vocabularies shared_vocabularies(Group& group, const Vocabularies& vocabularies) {
  if (group.is_alone()) return vocabularies;
  std::string bytes;
  if (group.is_first())
    bytes = packed({vocabularies.src->is_sentencepiece() ? "1" : "", vocabularies.shared() ? "1" : "", vocabularies.src->serialized(),
                    vocabularies.shared() ? "" : vocabularies.tgt->serialized()});
  const std::vector<std::string> parts = unpacked(group.broadcast(bytes));
  if (group.is_first()) return vocabularies;
  const auto read = [&](const std::string& text, Side side) {
    const std::string name = "the vocabulary of rank 0";
    return parts.at(0).empty() ? token_list_from_bytes(text, name) : sentencepiece_from_bytes(text, name, side);
  };
  if (!parts.at(1).empty()) return for_both_sides(read(parts.at(2), Side::kSrc));
  return {read(parts.at(2), Side::kSrc), read(parts.at(3), Side::kTgt)};
}

OwnCache::OwnCache(Group& group, bool sees_run) {
  const std::vector<std::string> needing = group.gather_to_all(sees_run ? "" : host_name());
  const std::string& own = needing.at(static_cast<size_t>(group.rank()));
  const bool makes = !own.empty() && std::ranges::find(needing, own) - needing.begin() == group.rank();
  on_all_ranks(group, [&] {
    if (makes) made_ = std::make_unique<TemporaryFolder>();
  });
  const std::vector<std::string> folders = group.gather_to_all(made_ ? made_->path().string() : "");
  if (own.empty()) return;
  for (size_t rank = 0; rank < folders.size(); ++rank)
    if (needing[rank] == own && !folders[rank].empty()) folder_ = folders[rank];
}

int64_t ranks_on_machine(Group& group) {
  const std::vector<std::string> hosts = group.gather_to_all(host_name());
  return std::ranges::count(hosts, host_name());
}

std::string share_threads(Group& group, int64_t wanted) {
  if (group.is_alone()) return "";
  const std::vector<std::string> cpus = group.gather_to_all(host_name() + " " + cpu_mask());
  const auto sharing = std::ranges::count(cpus, cpus.at(static_cast<size_t>(group.rank())));
  const char* const given = std::getenv("OMP_NUM_THREADS");
  const int share = std::max(1, static_cast<int>(num_cpus() / sharing));
  if (wanted == 0 && given == nullptr) {
    at::set_num_threads(share);
    set_thread_count(share);
  }
  const int used = thread_count();
  if (wanted > 0 || given == nullptr || 2 * used >= share) return "";
  return fmt::format(
      "OMP_NUM_THREADS is {}, though there are {} for each rank: most are idle. Unset it, or set threads: {} (torchrun sets it to 1)",
      given, counted(share, "CPU"), share);
}

std::string shares_text(int64_t batches, int64_t ranks) {
  std::string text;
  for (int64_t rank = 0; rank < ranks; ++rank)
    text += (rank == 0 ? "" : " + ") + std::to_string(batches / ranks + (rank < batches % ranks ? 1 : 0));
  return text;
}

}  // namespace lacuna

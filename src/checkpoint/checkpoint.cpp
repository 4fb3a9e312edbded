#include "checkpoint/checkpoint.h"

#include <c10/util/StringUtil.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/spelling.h"
#include "checkpoint/manifest.h"
#include "checkpoint/not_finite.h"
#include "checkpoint/quantize.h"
#include "config/load.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

using run_files::kConfig, run_files::kTrainerJson, run_files::kWeights;
constexpr uint64_t kMostText = 16 << 20, kMostVocabulary = 64 << 20;  // bytes of such a file
constexpr char kEmaWeights[] = "ema.safetensors";
constexpr char kInfo[] = "checkpoint.json";
constexpr char kTrainerTensors[] = "trainer.safetensors";

/// The file names of a vocabulary.
struct VocabularyFile {
  const char *pieces, *tokens;  ///< with SentencePiece, without
};
constexpr VocabularyFile kSharedVocabulary = {run_files::kSpmModel, "vocab.txt"};
constexpr VocabularyFile kSrcVocabulary = {run_files::kSrcSpmModel, "vocab.src.txt"};
constexpr VocabularyFile kTgtVocabulary = {run_files::kTgtSpmModel, "vocab.tgt.txt"};

std::string info_to_json(const CheckpointInfo& info, const Vocabularies& vocabularies) {
  ordered_json value = {{"step", info.step}, {"scores", info.scores}, {"uses_ema", info.uses_ema}, {"is_scheduled", info.is_scheduled}};
  value["averaged_from"] = info.averaged_from;
  if (!info.quantized_to.empty()) value["quantized_to"] = info.quantized_to;
  if (const ModelOrigin& origin = info.origin; !origin.kind.empty())
    value["origin"] = {{"place", origin.place}, {"kind", origin.kind}, {"license", origin.license}, {"sha256", origin.sha256}};
  value["vocabulary_sizes"] = {{"src", vocabularies.src->size()}, {"tgt", vocabularies.tgt->size()}, {"shared", vocabularies.shared()}};
  return json_text(value, 2) + "\n";
}

/// Reads the files of one checkpoint, checking each against the manifest. A link is resolved only once: training may
/// redirect `best` and `last` at any moment, and files of two checkpoints must not be mixed.
class Reader {
 public:
  explicit Reader(const fs::path& folder) : folder_(behind_links(folder)), manifest_(Manifest::read(folder_)) {}

  bool has(const std::string& name) const { return manifest_.lists(name); }
  std::string text(const std::string& name, uint64_t most = kMostText) const { return manifest_.read_file(folder_, name, most); }
  /// Passes the tensors of a file on as floats, one after the other: `begin` gets their shapes and returns who takes them.
  void pass_tensors(const std::string& name, const std::function<WeightTaker(const NamedTensors& shapes)>& begin) const {
    const FileReader file = manifest_.open(folder_, name);
    try {
      SafetensorsReader reader(file);
      FloatsOfFile floats(reader.shapes(), file.path().string());
      const WeightTaker take = begin(floats.shapes());
      std::optional<NotFinite> not_finite;
      while (std::optional<NamedTensor> read = reader.next())
        if (std::optional<NamedTensor> whole = floats.add(std::move(*read)))
          if (note_not_finite(whole->first, whole->second, not_finite)) take(whole->first, std::move(whole->second));
      manifest_.require(folder_, name, reader.digest());
      floats.end();
      require_none_found(not_finite, file.path().string());
    } catch (const CheckpointError&) {
      manifest_.require(folder_, name, digest_of(file.path()));  // other bytes than were written are damage, whatever they say
      throw;
    }
  }
  NamedTensors tensors(const std::string& name) const {
    NamedTensors tensors;
    pass_tensors(name, [&](const NamedTensors& /*shapes*/) {
      return [&](const std::string& of, Tensor tensor) { tensors.emplace(of, std::move(tensor)); };
    });
    return tensors;
  }
  std::optional<NamedTensors> tensors_if_there(const std::string& name) const {
    return has(name) ? std::optional(tensors(name)) : std::nullopt;
  }

  CheckpointInfo info() const {
    CheckpointInfo info;
    read_info([&](const nlohmann::json& value) {
      info.step = natural_number(value.at("step"));
      for (const auto& [name, score] : value.at("scores").get_ref<const nlohmann::json::object_t&>())
        if (score.is_number()) info.scores[name] = score.get<double>();
      info.uses_ema = value.at("uses_ema").get<bool>();
      info.is_scheduled = value.at("is_scheduled").get<bool>();
      info.averaged_from = value.at("averaged_from").get<std::vector<std::string>>();
      if (value.contains("origin")) {
        const nlohmann::json& origin = value.at("origin");
        info.origin = {origin.at("place").get<std::string>(), origin.at("kind").get<std::string>(), origin.at("license").get<std::string>(),
                       origin.at("sha256").get<std::map<std::string, std::string>>()};
      }
      info.quantized_to = value.value("quantized_to", value.value("quantised_to", ""));
    });
    info.program_version = manifest_.program_version;
    require_ema(info);
    return info;
  }

  Vocabularies vocabularies() const {
    bool are_shared = false;
    int64_t src_size = 0, tgt_size = 0;
    read_info([&](const nlohmann::json& value) {
      const nlohmann::json& sizes = value.at("vocabulary_sizes");
      are_shared = sizes.at("shared").get<bool>();
      src_size = natural_number(sizes.at("src"));
      tgt_size = natural_number(sizes.at("tgt"));
    });
    Vocabularies both;
    if (are_shared)
      both = for_both_sides(vocabulary(kSharedVocabulary, Side::kSrc));
    else
      both = {vocabulary(kSrcVocabulary, Side::kSrc), vocabulary(kTgtVocabulary, Side::kTgt)};
    check_size("source", *both.src, src_size);
    check_size("target", *both.tgt, tgt_size);
    return both;
  }

 private:
  /// Throws if the moving average that its scores were computed with is missing: the other weights would translate
  /// silently.
  void require_ema(const CheckpointInfo& info) const {
    if (!info.uses_ema || has(kEmaWeights)) return;
    throw CheckpointError((folder_ / kInfo).string() + " says that the moving average in " + kEmaWeights + " translates, but " +
                          Manifest::kFileName + " does not list that file. Use another checkpoint, or copy this one again");
  }
  /// Passes the parsed checkpoint.json to `read`. The manifest guarantees its bytes, not that Lacuna wrote them.
  template <class Read>
  void read_info(const Read& read) const {
    try {
      read(parsed_json(text(kInfo)));
    } catch (const nlohmann::json::exception& error) {
      throw CheckpointError((folder_ / kInfo).string() + " is not what lacuna writes: " + error.what() +
                            ". Use another checkpoint, or copy this one again");
    }
  }
  VocabularyPtr vocabulary(const VocabularyFile& file, Side side) const {
    if (has(file.tokens)) return token_list_from_bytes(text(file.tokens, kMostVocabulary), (folder_ / file.tokens).string());
    return sentencepiece_from_bytes(text(file.pieces, kMostVocabulary), (folder_ / file.pieces).string(), side);
  }
  void check_size(const std::string& side, const Vocabulary& vocabulary, int64_t expected) const {
    if (vocabulary.size() == expected) return;
    throw CheckpointError(folder_.string() + ": its " + side + " vocabulary has " + std::to_string(vocabulary.size()) +
                          " pieces, its model was trained with " + std::to_string(expected) +
                          ". The vocabulary file was exchanged: use the one that belongs to the checkpoint");
  }

  fs::path folder_;
  Manifest manifest_;
};

CheckpointContents contents_without_weights(const Reader& reader) {
  CheckpointContents contents;
  contents.info = reader.info();
  contents.config_yaml = reader.text(kConfig);
  contents.vocabularies = reader.vocabularies();
  return contents;
}

uint64_t bytes_of(const CheckpointContents& contents) {
  uint64_t bytes = contents.config_yaml.size() + contents.trainer_json.size();
  const auto add = [&bytes](const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) bytes += tensor.nbytes();
  };
  add(contents.weights);
  if (contents.ema_weights) add(*contents.ema_weights);
  if (contents.trainer_tensors) add(*contents.trainer_tensors);
  return bytes;
}

/// Writes the files of a checkpoint into a folder, the manifest last.
void write_contents(const fs::path& folder, const CheckpointContents& contents) {
  Manifest manifest;
  const auto text = [&](const std::string& name, const std::string& bytes) { manifest.files[name] = write_durably(folder / name, bytes); };
  const auto tensors = [&](const std::string& name, const NamedTensors& values) {
    manifest.files[name] = write_safetensors(folder / name, values);
  };
  const auto vocabulary = [&](const Vocabulary& one, const VocabularyFile& file) {
    text(one.is_sentencepiece() ? file.pieces : file.tokens, one.serialized());
  };
  const Vocabularies& both = contents.vocabularies;
  tensors(kWeights, contents.weights);
  if (contents.ema_weights) tensors(kEmaWeights, *contents.ema_weights);
  text(kConfig, contents.config_yaml);
  vocabulary(*both.src, both.shared() ? kSharedVocabulary : kSrcVocabulary);
  if (!both.shared()) vocabulary(*both.tgt, kTgtVocabulary);
  text(kInfo, info_to_json(contents.info, both));
  if (contents.trainer_tensors) {
    tensors(kTrainerTensors, *contents.trainer_tensors);
    text(kTrainerJson, contents.trainer_json);
  }
  manifest.program_version = LACUNA_VERSION;
  write_durably(folder / Manifest::kFileName, manifest.to_json());
}

/// Returns the digest of the file with the weights that translate.
FileDigest digest_of_weights(const std::string& path) {
  const Manifest manifest = Manifest::read(path);
  const auto found = manifest.files.find(read_checkpoint_info(path).uses_ema ? kEmaWeights : kWeights);
  if (found != manifest.files.end()) return found->second;
  throw CheckpointError((fs::path(path) / Manifest::kFileName).string() + " does not list " + kWeights +
                        ". Use another checkpoint, or copy this one again");
}

std::string first_few(const std::string& what, const std::vector<std::string>& names) {
  return names.empty() ? "" : "; " + what + ": " + join_first(names);
}

std::atomic<int> saving_threads = 0;

/// A thread in save_checkpoint().
struct Saving {
  Saving() { ++saving_threads; }
  ~Saving() { --saving_threads; }
};

}  // namespace

void save_checkpoint(const std::string& path, const CheckpointContents& contents, const std::function<void()>& before_commit) {
  const Saving saving;
  StagedFolder folder{fs::path(path)};
  bool is_refused = false;
  try {
    write_contents(folder.path(), contents);
    is_refused = true;
    if (before_commit) before_commit();
    is_refused = false;
    folder.commit();
  } catch (const MachineError& error) {
    if (is_refused) throw;
    std::error_code is_unknown;
    const fs::space_info space = fs::space(folder.path().parent_path(), is_unknown);
    std::string message =
        "the checkpoint " + path + " could not be saved: " + error.what() + ". It needs " + std::to_string(bytes_of(contents)) + " bytes";
    if (!is_unknown) message.append(", ").append(std::to_string(space.available)).append(" are free");
    throw MachineError(message);
  }
}

void wait_for_saving(std::chrono::milliseconds limit) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  for (auto waited = kPause; saving_threads > 0 && waited <= limit; waited += kPause) std::this_thread::sleep_for(kPause);
}

CheckpointContents load_checkpoint(const std::string& path, bool with_trainer_state) {
  const Reader reader{fs::path(path)};
  CheckpointContents contents = contents_without_weights(reader);
  contents.weights = reader.tensors(kWeights);
  contents.ema_weights = reader.tensors_if_there(kEmaWeights);
  if (with_trainer_state) {
    if (!reader.has(kTrainerTensors)) {
      throw CheckpointError(path +
                            " holds weights only, not what training needs to go on; a run keeps that in its newest checkpoint. "
                            "Another run may start from them: --train.init_from " +
                            path + " --train.reset '[optimizer, lr, data, best]'");
    }
    contents.trainer_tensors = reader.tensors(kTrainerTensors);
    contents.trainer_json = reader.text(kTrainerJson);
  }
  return contents;
}

void pass_weights_to_translate(const std::string& path, const WeightsBegin& begin) {
  const Reader reader{fs::path(path)};
  const CheckpointContents contents = contents_without_weights(reader);
  reader.pass_tensors(contents.info.uses_ema ? kEmaWeights : kWeights, [&](const NamedTensors& shapes) { return begin(contents, shapes); });
}

CheckpointContents load_checkpoint_to_translate(const std::string& path) {
  CheckpointContents contents;
  NamedTensors weights;
  pass_weights_to_translate(path, [&](const CheckpointContents& others, const NamedTensors& /*shapes*/) {
    contents = others;
    return [&](const std::string& name, Tensor weight) { weights.emplace(name, std::move(weight)); };
  });
  if (contents.info.uses_ema)
    contents.ema_weights = std::move(weights);
  else
    contents.weights = std::move(weights);
  return contents;
}

Options CheckpointContents::options(const std::string& path) const {
  return options_from_yaml(config_yaml, path + "/" + kConfig);
}

bool is_checkpoint(const std::string& path) {
  return fs::exists(fs::path(path) / Manifest::kFileName);
}

CheckpointInfo read_checkpoint_info(const std::string& path) {
  return Reader{fs::path(path)}.info();
}

std::string read_checkpoint_config(const std::string& path) {
  return Reader{fs::path(path)}.text(kConfig);
}

uint64_t bytes_of_weights(const std::string& path) {
  return digest_of_weights(path).bytes;
}

std::string hash_of_weights(const std::string& path) {
  return digest_of_weights(path).xxh3_128;
}

std::string hash_of_translating_files(const std::string& path) {
  ContentHash hash;
  hash.add(hash_of_weights(path));
  for (const auto& [name, digest] : Manifest::read(path).files) {
    if (name.ends_with(".safetensors") || name == kInfo || name == kTrainerJson) continue;
    hash.add(name);
    hash.add(digest.xxh3_128);
  }
  return hash.text();
}

bool has_trainer_state(const std::string& path) {
  return Manifest::read(path).lists(kTrainerTensors);
}

void drop_trainer_state(const std::string& path) {
  const fs::path folder(path);
  Manifest manifest = Manifest::read(folder);
  if (manifest.files.erase(kTrainerTensors) + manifest.files.erase(kTrainerJson) > 0)
    write_file_atomically(folder / Manifest::kFileName, manifest.to_json());
  fs::remove(folder / kTrainerTensors);  // no longer listed: a crash before this line costs space until the next call
  fs::remove(folder / kTrainerJson);
}

NamedTensors weights_of(const Transformer& model) {
  NamedTensors weights;
  for (const auto& parameter : model.named_parameters()) weights.emplace(parameter.key(), parameter.value().detach());
  return weights;
}

void require_weights_of(const Transformer& model, const NamedTensors& weights, const std::string& place) {
  std::vector<std::string> missing, superfluous, misshapen;
  const NamedTensors parameters = weights_of(model);
  for (const auto& [name, parameter] : parameters) {
    const auto found = weights.find(name);
    if (found == weights.end())
      missing.push_back(name);
    else if (found->second.sizes() != parameter.sizes())
      misshapen.push_back(c10::str(name, " is ", found->second.sizes(), ", expected ", parameter.sizes()));
  }
  for (const auto& [name, tensor] : weights)
    if (!parameters.contains(name)) superfluous.push_back(name);
  if (!missing.empty() || !superfluous.empty() || !misshapen.empty()) {
    throw CheckpointError(place + ": its weights do not fit the model of the configuration" + first_few("other shapes", misshapen) +
                          first_few("missing", missing) + first_few("not in this model", superfluous) +
                          ". Use the configuration that the checkpoint was trained with");
  }
}

void load_weights(Transformer& model, const NamedTensors& weights, const std::string& place) {
  require_weights_of(model, weights, place);
  for (const auto& [name, parameter] : weights_of(model)) Tensor(parameter).copy_(weights.at(name));
}

}  // namespace lacuna

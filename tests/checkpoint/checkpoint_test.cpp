#include "checkpoint/checkpoint.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "../base/child.h"
#include "../base/system_calls.h"
#include "base/durable_files.h"
#include "checkpoint/manifest.h"
#include "scratch.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  std::string load_error() const {
    return checkpoint_error_of([&] { load_checkpoint(path_, true); });
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
    return names;
  }

  int64_t entries_beside() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }
  /// Expects that the checkpoint is small_checkpoint of its step.
  void expect_whole() const {
    const CheckpointContents loaded = load_checkpoint(path_, true);
    const auto seed = static_cast<uint64_t>(loaded.info.step);
    for (const auto& [name, tensor] : small_checkpoint(seed).weights) EXPECT_TRUE(at::equal(loaded.weights.at(name), tensor)) << name;
    EXPECT_EQ(loaded.trainer_tensors->at("adam.first_moment.x")[0].item<double>(), static_cast<double>(seed));
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "step_1";
};

TEST_F(CheckpointTest, OfAveragedOnesWhosePathsAreNotUtf8IsSaved) {
  CheckpointContents saved = small_checkpoint(3);
  saved.info.averaged_from = {"caf\xE9/step_1"};
  save_checkpoint(path_, saved);
  EXPECT_EQ(load_checkpoint(path_, true).info.averaged_from, std::vector<std::string>{"caf\uFFFD/step_1"});
}

TEST_F(CheckpointTest, NamesTheFileAndTheTensorThatHoldNoNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const auto error = [&](auto&& spoil) {
    CheckpointContents contents = small_checkpoint(1);
    contents.ema_weights = small_checkpoint(2).weights;
    spoil(contents);
    save_checkpoint(path_, contents);
    return message_of<DamagedCheckpointError>([&] { load_checkpoint(path_, true); });
  };
  EXPECT_THAT(
      error([&](CheckpointContents& contents) { contents.weights.at("encoder.norm.gain")[3] = nan; }),
      HasSubstr("step_1/model.safetensors: the tensor encoder.norm.gain has 1 of 8 values that are not finite (NaN or infinity): "));
  EXPECT_THAT(
      error([&](CheckpointContents& contents) {
        contents.ema_weights->at("decoder.norm.gain").fill_(-infinity);
        contents.ema_weights->at("encoder.norm.bias")[0] = nan;
      }),
      HasSubstr("ema.safetensors: the tensor decoder.norm.gain has 8 of 8 values that are not finite (NaN or infinity), and 1 other "
                "tensor has such"));
  EXPECT_THAT(error([&](CheckpointContents& contents) { contents.trainer_tensors->begin()->second[1] = infinity; }),
              HasSubstr("trainer.safetensors: the tensor adam.first_moment.x has 1 of 3 values"));
}

TEST_F(CheckpointTest, LoadsWhatWasSaved) {
  CheckpointContents saved = small_checkpoint(3);
  saved.info = {.step = 3, .scores = {{"bleu", 1.0 / 3}}, .uses_ema = true, .is_scheduled = false, .averaged_from = {"a", "b"}};
  saved.ema_weights = small_checkpoint(4).weights;
  save_checkpoint(path_, saved);
  const CheckpointContents loaded = load_checkpoint(path_, true);
  for (const auto& [name, tensor] : saved.weights) EXPECT_TRUE(at::equal(loaded.weights.at(name), tensor)) << name;
  for (const auto& [name, tensor] : *saved.ema_weights) EXPECT_TRUE(at::equal(loaded.translating_weights().at(name), tensor)) << name;
  EXPECT_TRUE(at::equal(loaded.trainer_tensors->at("adam.first_moment.x"), saved.trainer_tensors->at("adam.first_moment.x")));
  EXPECT_EQ(loaded.trainer_json, saved.trainer_json);
  EXPECT_EQ(loaded.config_yaml, saved.config_yaml);
  EXPECT_EQ(loaded.info.step, 3);
  EXPECT_EQ(loaded.info.scores, saved.info.scores);
  EXPECT_FALSE(loaded.info.is_scheduled);
  EXPECT_EQ(loaded.info.averaged_from, saved.info.averaged_from);
  EXPECT_FALSE(loaded.info.program_version.empty());
  EXPECT_TRUE(loaded.vocabularies.shared());
  EXPECT_EQ(loaded.vocabularies.src->size(), saved.vocabularies.src->size());
}

TEST_F(CheckpointTest, GivesTheOptionsOfItsConfigurationOrSaysWhichFileHasNone) {
  CheckpointContents contents = small_checkpoint();
  EXPECT_EQ(to_yaml(contents.options(path_)), contents.config_yaml);
  contents.config_yaml = "no_option: 1\n";
  EXPECT_THAT(message_of<ConfigError>([&] { contents.options(path_); }), HasSubstr(path_ + "/config.yaml"));
}

TEST_F(CheckpointTest, KeepsTwoVocabulariesApart) {
  CheckpointContents saved = small_checkpoint();
  saved.vocabularies.tgt = token_list_from_bytes("<unk>\n<s>\n</s>\nx\n", "test");
  save_checkpoint(path_, saved);
  const CheckpointContents loaded = load_checkpoint(path_);
  EXPECT_EQ(loaded.vocabularies.src->size(), 6);
  EXPECT_EQ(loaded.vocabularies.tgt->size(), 4);
  EXPECT_TRUE(fs::exists(fs::path(path_) / "vocab.tgt.txt"));
}

TEST_F(CheckpointTest, LoadModelGivesTheWeightsThatTranslate) {
  CheckpointContents saved = small_checkpoint(1);
  saved.ema_weights = small_checkpoint(2).weights;
  saved.info.uses_ema = true;
  save_checkpoint(path_, saved);
  const LoadedModel loaded = load_model(path_);
  for (const auto& [name, tensor] : weights_of(*loaded.model)) EXPECT_TRUE(at::equal(tensor, saved.ema_weights->at(name))) << name;
  EXPECT_FALSE(loaded.model->is_training());
}

TEST_F(CheckpointTest, EveryFlippedBitIsNoticed) {
  save_checkpoint(path_, small_checkpoint());
  for (const std::string& name : files()) {
    const fs::path file = fs::path(path_) / name;
    const std::string whole = bytes_of(file);
    const size_t step = name == Manifest::kFileName ? 1 : std::max<size_t>(1, whole.size() / 20);
    for (size_t place = 0; place < whole.size(); place += step) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << (place % 8)));
      write_bytes(file, damaged);
      EXPECT_FALSE(load_error().empty()) << name << ", byte " << place;
    }
    write_bytes(file, whole);
  }
  EXPECT_NO_THROW(load_checkpoint(path_, true));
}

TEST_F(CheckpointTest, AFlippedBitIsNamed) {
  save_checkpoint(path_, small_checkpoint());
  const fs::path file = fs::path(path_) / "model.safetensors";
  std::string bytes = bytes_of(file);
  bytes[bytes.size() / 2] ^= 4;
  write_bytes(file, bytes);
  EXPECT_THAT(load_error(), AllOf(HasSubstr("model.safetensors is damaged: its XXH3-128 is"), HasSubstr("Use another checkpoint")));
}

TEST_F(CheckpointTest, EveryTruncationIsNoticed) {
  save_checkpoint(path_, small_checkpoint());
  for (const std::string& name : files()) {
    const fs::path file = fs::path(path_) / name;
    const std::string whole = bytes_of(file);
    for (const size_t size : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
      write_bytes(file, whole.substr(0, size));
      EXPECT_FALSE(load_error().empty()) << name << ", " << size << " bytes";
    }
    fs::remove(file);
    EXPECT_FALSE(load_error().empty()) << name << " missing";
    write_bytes(file, whole);
  }
}

TEST_F(CheckpointTest, ATruncatedFileIsNamedWithBothSizes) {
  save_checkpoint(path_, small_checkpoint());
  const fs::path file = fs::path(path_) / "model.safetensors";
  const auto size = fs::file_size(file);
  fs::resize_file(file, 100);
  EXPECT_THAT(load_error(), HasSubstr("model.safetensors is damaged: it has 100 bytes, the manifest says " + std::to_string(size)));
}

TEST_F(CheckpointTest, BehindALinkIsReadFromOneFolderWhereverTheLinkMayPointNext) {
  save_checkpoint(path_, small_checkpoint());
  fs::create_symlink("step_1", folder_ / "best");
  EXPECT_EQ(load_checkpoint(folder_ / "best").info.step, 1);
  fs::resize_file(fs::path(path_) / "model.safetensors", 100);
  for (const char* link : {"best", "best/"})
    EXPECT_THAT(checkpoint_error_of([&] { load_checkpoint(folder_ / link); }), HasSubstr(path_ + "/model.safetensors is damaged"));
}

TEST_F(CheckpointTest, ANewerFormatIsNamed) {
  save_checkpoint(path_, small_checkpoint());
  const fs::path file = fs::path(path_) / Manifest::kFileName;
  std::string text = bytes_of(file);
  const std::string version = "\"format_version\": 1";
  text.replace(text.find(version), version.size(), "\"format_version\": 7");
  write_bytes(file, text);
  EXPECT_THAT(load_error(), AllOf(HasSubstr("format version 7"), HasSubstr("reads versions up to 1"), HasSubstr("newer lacuna")));
}

TEST_F(CheckpointTest, WhatIsNoCheckpointIsSaidSo) {
  EXPECT_THAT(load_error(), HasSubstr("does not exist"));
  fs::create_directory(path_);
  EXPECT_THAT(load_error(), HasSubstr("is not a checkpoint: it has no manifest.json"));
  fs::remove(path_);
  write_bytes(path_, "x");
  EXPECT_THAT(load_error(), HasSubstr("is a file"));
}

TEST_F(CheckpointTest, AManifestCannotNameFilesElsewhere) {
  save_checkpoint(path_, small_checkpoint());
  const fs::path file = fs::path(path_) / Manifest::kFileName;
  std::string text = bytes_of(file);
  text.replace(text.find("spm") == std::string::npos ? text.find("vocab.txt") : text.find("spm.model"), 9, "../etc.md");
  write_bytes(file, text);
  EXPECT_THAT(load_error(), HasSubstr("which is no file name"));
}

TEST_F(CheckpointTest, AnInfoThatSaysSomethingElseIsNamed) {
  save_checkpoint(path_, small_checkpoint());
  const std::string name = "checkpoint.json", whole = bytes_of(fs::path(path_) / name);
  const auto expect_named = [&](const std::string& bytes) {
    replace_listed(path_, name, bytes);
    EXPECT_THAT(load_error(), AllOf(HasSubstr(path_ + "/checkpoint.json is not what lacuna writes: "), HasSubstr("Use another checkpoint")))
        << bytes;
  };
  for (const std::string bytes : {"", "{", "7", "[]", "{}"}) expect_named(bytes);
  for (const std::string key :
       {"step", "scores", "uses_ema", "is_scheduled", "averaged_from", "vocabulary_sizes", "src", "tgt", "shared"}) {
    const nlohmann::json written = nlohmann::json::parse(whole);
    const nlohmann::json::json_pointer place((written.contains(key) ? "/" : "/vocabulary_sizes/") + key);
    for (const nlohmann::json& wrong : {nlohmann::json("x"), nlohmann::json(nullptr)}) {
      nlohmann::json changed = written;
      changed[place] = wrong;
      expect_named(changed.dump());
    }
  }
  replace_listed(path_, name, whole);
  expect_whole();
}

TEST_F(CheckpointTest, CountsThatAreNoWholeNumbersAreNamed) {
  save_checkpoint(path_, small_checkpoint());
  nlohmann::json info = nlohmann::json::parse(bytes_of(fs::path(path_) / "checkpoint.json"));
  for (const nlohmann::json& wrong : {nlohmann::json(1e308), nlohmann::json(0.5), nlohmann::json(-1), nlohmann::json(true)}) {
    info["step"] = wrong;
    replace_listed(path_, "checkpoint.json", info.dump());
    EXPECT_THAT(load_error(), HasSubstr("expected a whole number of 0 or more, found " + wrong.dump()));
  }
  constexpr size_t kDeep = 200000;
  replace_listed(path_, "checkpoint.json", R"({"step": )" + std::string(kDeep, '[') + std::string(kDeep, ']') + "}");
  EXPECT_THAT(load_error(), HasSubstr("nested more than 64 levels deep"));
}

TEST_F(CheckpointTest, NoFileMayBeALinkAPipeOrADevice) {
  for (const std::string name : {"manifest.json", "model.safetensors", "config.yaml", "checkpoint.json", "vocab.txt", "trainer.json"}) {
    save_checkpoint(path_, small_checkpoint());
    const fs::path file = fs::path(path_) / name, elsewhere = folder_ / name;
    fs::rename(file, elsewhere);
    for (const fs::path& target : {elsewhere, fs::path("/dev/zero")}) {
      fs::create_symlink(target, file);
      EXPECT_THAT(load_error(), AllOf(HasSubstr(file.string() + ": is a link; expected a regular file"), HasSubstr("cp -L"))) << name;
      fs::remove(file);
    }
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(load_error(), HasSubstr(file.string() + ": is no file; expected a regular file"));
    fs::remove_all(path_);
    fs::remove(elsewhere);
  }
}

TEST_F(CheckpointTest, AManifestThatIsLargeIsNotRead) {
  save_checkpoint(path_, small_checkpoint());
  fs::resize_file(fs::path(path_) / Manifest::kFileName, uint64_t{1} << 30);
  EXPECT_THAT(load_error(), HasSubstr("has 1073741824 bytes; expected at most"));
}

TEST_F(CheckpointTest, WeightsAreNotChangedByWhatIsWrittenToTheirFileLater) {
  save_checkpoint(path_, small_checkpoint());
  const LoadedModel loaded = load_model(path_);
  const auto sum = [&] { return loaded.model->parameters().back().sum().item<double>(); };
  const double before = sum();
  fs::resize_file(fs::path(path_) / "model.safetensors", 0);
  EXPECT_EQ(sum(), before);
}

TEST_F(CheckpointTest, OfTwoSetsOfWeightsThoseThatTranslateAreRead) {
  CheckpointContents contents = small_checkpoint();
  contents.ema_weights = small_checkpoint(2).weights;
  contents.info.uses_ema = true;
  save_checkpoint(path_, contents);
  const CheckpointContents read = load_checkpoint_to_translate(path_);
  EXPECT_TRUE(read.weights.empty());
  EXPECT_EQ(read.translating_weights().size(), contents.weights.size());
  EXPECT_NO_THROW(load_model(path_));
}

TEST_F(CheckpointTest, WithoutTheMovingAverageThatTranslatesIsNamed) {
  save_checkpoint(path_, small_checkpoint());
  nlohmann::json info = nlohmann::json::parse(bytes_of(fs::path(path_) / "checkpoint.json"));
  info["uses_ema"] = true;
  replace_listed(path_, "checkpoint.json", info.dump());
  for (const auto& read : std::vector<std::function<void()>>{[&] { load_checkpoint(path_); }, [&] { read_checkpoint_info(path_); },
                                                             [&] { bytes_of_weights(path_); }})
    EXPECT_THAT(checkpoint_error_of(read),
                AllOf(HasSubstr(path_ + "/checkpoint.json says"), HasSubstr("manifest.json does not list that")));
}

TEST_F(CheckpointTest, WithoutWeightsIsNamed) {
  save_checkpoint(path_, small_checkpoint());
  Manifest manifest = Manifest::read(path_);
  manifest.files.erase("model.safetensors");
  write_bytes(fs::path(path_) / Manifest::kFileName, manifest.to_json());
  EXPECT_THAT(checkpoint_error_of([&] { bytes_of_weights(path_); }), HasSubstr("manifest.json does not list model.safetensors"));
}

TEST_F(CheckpointTest, WeightsOfAnotherShapeAreListed) {
  save_checkpoint(path_, small_checkpoint());
  Options wider = small_options();
  wider.model.d_model = 16;
  Transformer model(wider.model, {.src = 6, .tgt = 6, .shared = true}, 1);
  const std::string error = checkpoint_error_of([&] { load_weights(model, load_checkpoint(path_).weights, path_); });
  EXPECT_THAT(error, AllOf(HasSubstr("do not fit the model of the configuration; other shapes: "), HasSubstr(", expected [")));
}

TEST_F(CheckpointTest, MissingAndSuperfluousWeightsAreListed) {
  CheckpointContents contents = small_checkpoint();
  const std::string first = contents.weights.begin()->first;
  contents.weights["surplus"] = contents.weights.extract(first).mapped();
  Transformer model(small_options().model, {.src = 6, .tgt = 6, .shared = true}, 1);
  EXPECT_THAT(checkpoint_error_of([&] { load_weights(model, contents.weights, "x"); }),
              AllOf(HasSubstr("missing: " + first), HasSubstr("not in this model: surplus")));
}

TEST_F(CheckpointTest, ADroppedTrainerStateLeavesTheWeights) {
  save_checkpoint(path_, small_checkpoint());
  EXPECT_TRUE(has_trainer_state(path_));
  drop_trainer_state(path_);
  EXPECT_FALSE(has_trainer_state(path_));
  EXPECT_NO_THROW(load_checkpoint(path_));
  EXPECT_THAT(load_error(), HasSubstr("holds weights only"));
}

/// Returns the error message of a save that may write no file longer than `bytes`.
std::string error_of_limited_save(const std::string& path, uint64_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  return message_of<MachineError>([&] { save_checkpoint(path, small_checkpoint(2)); });
}

TEST_F(CheckpointTest, ADiskThatIsFullLeavesThePreviousOneAndNothingElse) {
  save_checkpoint(path_, small_checkpoint(1));
  for (const uint64_t bytes : {0, 100, 3000})
    EXPECT_EQ(exit_code_of_child([&] {
                const std::string error = error_of_limited_save(path_, bytes);
                EXPECT_THAT(
                    error, AllOf(HasSubstr("could not be saved: "), HasSubstr("It needs "), HasSubstr(" bytes, "), HasSubstr(" are free")));
                return HasFailure() ? 1 : 0;
              }),
              0)
        << bytes;
  EXPECT_EQ(load_checkpoint(path_, true).info.step, 1);
  EXPECT_EQ(entries_beside(), 1);
}

/// Runs a child that saves checkpoints 2, 3, ... over each other, and kills it after `delay`.
void kill_while_saving(const std::string& path, std::chrono::microseconds delay) {
  const CheckpointContents even = small_checkpoint(2), odd = small_checkpoint(3);
  const pid_t child = start_child([&]() -> int {
    for (int i = 0;; ++i) save_checkpoint(path, i % 2 == 0 ? even : odd);
  });
  std::this_thread::sleep_for(delay);
  EXPECT_EQ(kill_child(child), kKilled);
}

TEST_F(CheckpointTest, AKillInTheMiddleOfSavingLeavesAWholeCheckpoint) {
  save_checkpoint(path_, small_checkpoint(1));
  for (int i = 0; i < 60; ++i) {
    kill_while_saving(path_, std::chrono::microseconds(200 + 397 * i));
    expect_whole();
  }
  save_checkpoint(path_, small_checkpoint(1));
  EXPECT_EQ(entries_beside(), 1) << "leftovers are gone";
}

/// Kills one save after another, each one system call later.
TEST_F(CheckpointTest, AKillBeforeAnyStepOfSavingLeavesAWholeCheckpoint) {
  for (const bool can_exchange : {true, false}) {
    save_checkpoint(path_, small_checkpoint(1));
    int steps = 0, code = kKilled;
    for (; code == kKilled && steps < 100; ++steps) {
      code = exit_code_of_child([&] {
        WatchedCalls watched(folder_.path());
        watched.error = [&](const std::string& call) {
          if (std::ssize(watched.calls) > steps) raise(SIGKILL);
          return !can_exchange && call.starts_with("exchange") ? EINVAL : 0;
        };
        save_checkpoint(path_, small_checkpoint(2));
        return 0;
      });
      if (can_exchange) {
        EXPECT_TRUE(fs::exists(path_)) << "step " << steps;
      }
      remove_leftovers(folder_.path());  // as a training that goes on does first
      expect_whole();
    }
    EXPECT_EQ(code, 0);
    EXPECT_GT(steps, 8) << "a sync of each file, of both folders, and the renaming";
    EXPECT_EQ(load_checkpoint(path_).info.step, 2);
    EXPECT_EQ(entries_beside(), 1);
  }
}

TEST_F(CheckpointTest, EachFileIsSyncedBeforeTheirFolder) {
  const WatchedCalls watched(folder_.path());
  save_checkpoint(path_, small_checkpoint());
  const std::string temporary = StagedFolder(path_).path().filename().string();
  std::vector<std::string> of_files;
  for (const std::string& file : files()) of_files.push_back("fsync " + temporary + "/" + file);
  ASSERT_GT(watched.calls.size(), of_files.size());
  const auto next = watched.calls.begin() + std::ssize(of_files);
  EXPECT_THAT(std::vector(watched.calls.begin(), next), testing::UnorderedElementsAreArray(of_files));
  EXPECT_EQ(*next, "fsync " + temporary);  // what follows is in tests/base/durable_files_test.cpp
}

}  // namespace
}  // namespace lacuna

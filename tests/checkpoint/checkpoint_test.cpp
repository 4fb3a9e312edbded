#include "checkpoint/checkpoint.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

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

  ScratchFolder folder_;
  const std::string path_ = (folder_ / "step_1").string();
};

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

/// In a child that may write no file longer than `bytes`: the exit code that the save's MachineError gives.
int exit_code_of_limited_save(const std::string& path, uint64_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save_checkpoint(path, small_checkpoint(2));
    } catch (const MachineError& error) {
      _exit(std::string(error.what()).find(" bytes are free") == std::string::npos &&
                    std::string(error.what()).find("It needs ") == std::string::npos
                ? 9
                : error.exit_code());
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CheckpointTest, ADiskThatIsFullLeavesThePreviousOneAndNothingElse) {
  save_checkpoint(path_, small_checkpoint(1));
  for (const uint64_t bytes : {0, 100, 3000}) EXPECT_EQ(exit_code_of_limited_save(path_, bytes), 1) << bytes;
  EXPECT_EQ(load_checkpoint(path_, true).info.step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

/// A child saves checkpoints 2, 3, ... over each other and is killed after `delay`.
void kill_while_saving(const std::string& path, std::chrono::microseconds delay) {
  const CheckpointContents even = small_checkpoint(2), odd = small_checkpoint(3);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0;; ++i) save_checkpoint(path, i % 2 == 0 ? even : odd);
  }
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(CheckpointTest, AKillInTheMiddleOfSavingLeavesAWholeCheckpoint) {
  save_checkpoint(path_, small_checkpoint(1));
  for (int i = 0; i < 60; ++i) {
    kill_while_saving(path_, std::chrono::microseconds(200 + 397 * i));
    const CheckpointContents loaded = load_checkpoint(path_, true);
    const uint64_t seed = static_cast<uint64_t>(loaded.info.step);
    for (const auto& [name, tensor] : small_checkpoint(seed).weights) ASSERT_TRUE(at::equal(loaded.weights.at(name), tensor)) << name;
    ASSERT_EQ(loaded.trainer_tensors->at("adam.first_moment.x")[0].item<double>(), static_cast<double>(seed));
  }
  save_checkpoint(path_, small_checkpoint(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);  // leftovers are gone
}

}  // namespace
}  // namespace lacuna

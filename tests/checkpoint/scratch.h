#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "config/load.h"

namespace lacuna {

/// An empty folder of its own for each test.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("lacuna." + std::string(test->test_suite_name()) + "." + test->name() + "." + std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// What a CheckpointError of `action` says; a failure if there is none.
template <class Action>
std::string checkpoint_error_of(Action&& action) {
  try {
    action();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no CheckpointError";
  return "";
}

inline Options small_options() {
  Options options;
  options.model.d_model = 8;
  options.model.num_heads = 2;
  options.model.d_ff = 16;
  options.model.encoder_layers = options.model.decoder_layers = 1;
  return options;
}

/// A checkpoint of a small model with weights that depend on `seed`, trainer state included.
inline CheckpointContents small_checkpoint(uint64_t seed = 1, const Options& options = small_options()) {
  CheckpointContents contents;
  contents.vocabularies.src = contents.vocabularies.tgt = token_list_from_bytes("<unk>\n<s>\n</s>\na\nb\nc\n", "test");
  const Transformer model(options.model, sizes_of(contents.vocabularies), seed);
  for (const auto& [name, tensor] : weights_of(model)) contents.weights[name] = tensor.clone();
  contents.config_yaml = to_yaml(options);
  contents.info.step = static_cast<int64_t>(seed);
  contents.trainer_tensors = NamedTensors{{"adam.first_moment.x", at::full({3}, static_cast<double>(seed), at::kDouble)}};
  contents.trainer_json = "{\"step\": " + std::to_string(seed) + "}\n";
  return contents;
}

}  // namespace lacuna

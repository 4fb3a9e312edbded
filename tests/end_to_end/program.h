#pragma once

#include <gmock/gmock.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lacuna {

/// The program itself, started as a user would, with one thread.
class Program {
 public:
  /// Its stderr goes to `log`.
  Program(const std::vector<std::string>& arguments, const std::filesystem::path& log);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool is_running();
  void send(int signal) const;
  /// The exit code; 128 + the signal if one ended it.
  int wait();

 private:
  pid_t process_ = -1;
  int status_ = -1;
};

/// A corpus of digit strings and a small configuration for it, in a folder of its own for each test.
class DigitsTest : public testing::Test {
 protected:
  DigitsTest();
  ~DigitsTest() override;

  /// Writes `lines` pairs: digits, and what `translate` makes of them.
  void write_corpus(const std::string& name, int lines, uint64_t seed, const std::function<std::string(std::string)>& translate) const;

  /// Starts `lacuna train` with the configuration, overrides added.
  std::vector<std::string> train(const std::string& run, const std::vector<std::string>& overrides = {}) const;
  /// Runs the program to its end; stderr is in `log()` then.
  int exit_code(const std::vector<std::string>& arguments) const;
  std::string log() const;

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  static std::string bytes_of(const std::filesystem::path& file);
  /// Waits until a line of a run's metrics.jsonl is about this step or a later one.
  void wait_for_step(Program& program, const std::string& run, int64_t step) const;
  int64_t lines_of(const std::string& file) const;
  /// The records of a run's metrics.jsonl of one kind.
  std::vector<nlohmann::json> records(const std::string& run, const std::string& kind) const;
  /// Throws if there is none.
  nlohmann::json last_record(const std::string& run, const std::string& kind) const;

  std::filesystem::path folder_;
};

/// `model.attention` with masks, some of which count for more with each step.
inline constexpr char kCalibrated[] = "{decoder_self: calibrated, cross: {type: calibrated, combine: anneal, anneal_steps: 40}}";

std::string same(std::string digits);
std::string reversed(std::string digits);

}  // namespace lacuna

#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/random.h"

namespace lacuna {

namespace fs = std::filesystem;

Program::Program(const std::vector<std::string>& arguments, const fs::path& log) {
  std::vector<const char*> words = {LACUNA_PROGRAM};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);
  process_ = fork();
  if (process_ != 0) return;
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), none = open("/dev/null", O_RDWR);
  dup2(none, STDIN_FILENO);
  dup2(none, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execv(words[0], const_cast<char* const*>(words.data()));
  _exit(127);
}

Program::~Program() {
  if (!is_running()) return;
  send(SIGKILL);
  wait();
}

bool Program::is_running() {
  return status_ < 0 && waitpid(process_, &status_, WNOHANG) == 0;
}

void Program::send(int signal) const {
  kill(process_, signal);
}

int Program::wait() {
  if (status_ < 0) waitpid(process_, &status_, 0);
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

DigitsTest::DigitsTest() {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = "lacuna.";
  name.append(test->name()).append(".").append(std::to_string(getpid()));
  folder_ = fs::temp_directory_path() / name;
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  std::ofstream vocabulary(path("vocab.txt"));
  for (char digit = '0'; digit <= '9'; ++digit) vocabulary << digit << '\n';
  std::ofstream(path("config.yaml")) << "data:\n"
                                     << "  src_lang: x\n  tgt_lang: y\n  tokenizer: none\n"
                                     << "  vocab: " << path("vocab.txt").string() << "\n"
                                     << "  train: [{src: " << path("train.src").string() << ", tgt: " << path("train.tgt").string()
                                     << "}]\n"
                                     << "  valid: [{src: " << path("valid.src").string() << ", tgt: " << path("valid.tgt").string()
                                     << "}]\n"
                                     << "model: {d_model: 32, num_heads: 2, d_ff: 64, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}\n"
                                     << "train:\n"
                                     << "  batch_tokens: 256\n  lr: 3e-3\n  warmup_steps: 20\n  max_steps: 60\n  valid_every: 20\n"
                                     << "  save_every: 10\n  log_every: 5\n  valid_translate: false\n  metric: loss\n";
}

DigitsTest::~DigitsTest() {
  fs::remove_all(folder_);
}

void DigitsTest::write_corpus(const std::string& name, int lines, uint64_t seed,
                              const std::function<std::string(std::string)>& translate) const {
  std::ofstream src(path(name + ".src")), tgt(path(name + ".tgt"));
  RandomStream random(seed);
  const auto spaced = [](const std::string& digits) {
    std::string text;
    for (const char digit : digits) text += (text.empty() ? "" : " ") + std::string(1, digit);
    return text;
  };
  for (int line = 0; line < lines; ++line) {
    std::string digits;
    for (uint64_t left = 3 + random.next_below(6); left > 0; --left) digits += static_cast<char>('0' + random.next_below(10));
    src << spaced(digits) << '\n';
    tgt << spaced(translate(digits)) << '\n';
  }
}

std::vector<std::string> DigitsTest::train(const std::string& run, const std::vector<std::string>& overrides) const {
  std::vector<std::string> words = {"train", "-c", path("config.yaml").string(), "--run", path(run).string(), "--threads", "1"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

int DigitsTest::exit_code(const std::vector<std::string>& arguments) const {
  fs::remove(path("log"));
  return Program(arguments, path("log")).wait();
}

std::string DigitsTest::log() const {
  return bytes_of(path("log"));
}

std::string DigitsTest::bytes_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<nlohmann::json> DigitsTest::records(const std::string& run, const std::string& kind) const {
  std::vector<nlohmann::json> found;
  std::ifstream lines(path(run) / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);)
    if (nlohmann::json record = nlohmann::json::parse(line); record["kind"] == kind) found.push_back(std::move(record));
  return found;
}

nlohmann::json DigitsTest::last_record(const std::string& run, const std::string& kind) const {
  const std::vector<nlohmann::json> all = records(run, kind);
  if (all.empty()) throw std::runtime_error(run + " has no record of kind " + kind);
  return all.back();
}

void DigitsTest::wait_for_step(Program& program, const std::string& run, int64_t step) const {
  while (program.is_running()) {
    std::ifstream lines(path(run) / "metrics.jsonl");
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      if (nlohmann::json::parse(line)["step"] >= step) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int64_t DigitsTest::lines_of(const std::string& file) const {
  const std::string bytes = bytes_of(path(file));
  return std::count(bytes.begin(), bytes.end(), '\n');
}

std::string same(std::string digits) {
  return digits;
}

std::string reversed(std::string digits) {
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace lacuna

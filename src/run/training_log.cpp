#include "run/training_log.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/device.h"
#include "base/log.h"
#include "config/run_files.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> resumed_step(const TrainingState& state) {
  return state.step > 0 ? std::optional(state.step) : std::nullopt;
}

std::string listed(const Scores& scores) {
  std::string text;
  for (const auto& [name, digits] : {std::pair("loss", 4), {"ppl", 2}, {"accuracy", 3}, {"bleu", 2}, {"chrf", 2}})
    if (const auto found = scores.find(name); found != scores.end())
      text += fmt::format("{}{} {:.{}f}", text.empty() ? "" : ", ", name, found->second, digits);
  return text;
}

double share_done(int64_t step, const RunLength& length) {
  const int64_t updates = length.updates();
  return updates > 0 ? std::min(1.0, static_cast<double>(step) / static_cast<double>(updates)) : 0;
}

/// "47/452", or "47" without a limit.
std::string count_of(int64_t number, int64_t limit) {
  return limit > 0 ? fmt::format("{}/{}", number, std::max(number, limit)) : std::to_string(number);
}

/// The present time, as in "2025-12-31T23:59:59Z".
std::string utc_time() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// Values by name, with spaces in the names: "mask 0.513, mask loss -4.1021".
std::string described(const std::map<std::string, double>& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, value);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

int64_t RunLength::updates() const {
  const auto of_epochs = static_cast<int64_t>(std::ceil(static_cast<double>(max_epochs) * updates_per_epoch));
  if (max_steps == 0 || max_epochs == 0) return std::max(max_steps, of_epochs);
  return std::min(max_steps, of_epochs);
}

void RecentUpdates::add(const UpdateProgress& update) {
  constexpr double kKept = 0.95;
  tokens_ = kKept * tokens_ + static_cast<double>(update.tokens);
  seconds_ = kKept * seconds_ + update.seconds;
  loss_ = kKept * loss_ + update.loss;
}

TrainingLog::TrainingLog(const std::string& run, const TrainingState& state, const RunLength& length, at::Device device, bool shows_ranks)
    : metrics_(fs::path(run) / run_files::kMetrics, resumed_step(state), state.validation_is_due),
      tensorboard_(fs::path(run) / run_files::kTensorboard, state.step),
      length_(length),
      bar_(share_done(state.step, length)),
      device_(device),
      shows_ranks_(shows_ranks) {}

void TrainingLog::progress(const TrainingProgress& line) {
  bar_.hide();
  log_info(
      "step {}, epoch {}, loss {:.4f}, ppl {:.2f}, accuracy {:.3f}, gradient norm {:.3f}, lr {:.3e}, {:.0f} tokens/s, data wait {:.1f} %{}",
      line.step, line.epoch, line.loss_per_token, std::exp(line.nll_per_token), line.accuracy, line.gradient_norm, line.lr,
      line.tokens_per_second, 100 * line.data_wait, shows_ranks_ ? fmt::format(", rank wait {:.1f} %", 100 * line.rank_wait) : "");
  std::map<std::string, double> values = {{"epoch", static_cast<double>(line.epoch)},
                                          {"loss", line.loss_per_token},
                                          {"nll", line.nll_per_token},
                                          {"ppl", std::exp(line.nll_per_token)},
                                          {"accuracy", line.accuracy},
                                          {"gradient_norm", line.gradient_norm},
                                          {"lr", line.lr},
                                          {"tokens_per_second", line.tokens_per_second},
                                          {"tokens_per_update", line.tokens_per_update},
                                          {"data_wait", line.data_wait},
                                          {"peak_mebibytes", peak_mebibytes(device_)},
                                          {"skipped_updates", static_cast<double>(line.skipped_updates)}};
  if (shows_ranks_) values["rank_wait"] = line.rank_wait;
  if (line.penalty_per_token != 0) values["penalty"] = line.penalty_per_token;
  if (!line.auxiliary.empty()) log_info("  {}", described(line.auxiliary));
  values.insert(line.auxiliary.begin(), line.auxiliary.end());
  record("train", line.step, values);
}

void TrainingLog::validation(int64_t step, const Evaluation& evaluation, const EvaluationSet& set, int64_t num_samples,
                             const std::string& joiner) {
  bar_.hide();
  log_info("validation after step {} on {}: {}{}", step, evaluation.name, listed(evaluation.scores),
           evaluation.signature.empty() ? "" : " (" + evaluation.signature + ")");
  const int64_t shown = std::min(num_samples, static_cast<int64_t>(evaluation.hypotheses.size()));
  for (int64_t i = 0; i < shown; ++i) {
    const size_t line = static_cast<size_t>(i);
    log_info("  source      {}", set.src_lines[line]);
    log_info("  translation {}", evaluation.hypotheses[line]);
    log_info("  reference   {}", joined(set.tgt_lines[line], joiner));
  }
  record("valid", step, evaluation.scores, evaluation.name);
}

void TrainingLog::attention(int64_t step, const AttentionSummary& summary) {
  bar_.hide();
  std::map<std::string, double> values = summary.rows;
  for (const auto& [name, heads] : summary.numbers) {
    std::string by_head;
    for (size_t head = 0; head < heads.size(); ++head) {
      by_head += fmt::format(" {:.3f}", heads[head]);
      values[name + "." + std::to_string(head)] = heads[head];
    }
    log_info("  {} by head{}", name, by_head);
  }
  record("attention", step, values);
}

void TrainingLog::test(int64_t step, const Evaluation& evaluation, const std::string& weights, const std::string& fingerprint) {
  bar_.hide();
  log_info("test set {} with {}: {} ({})", evaluation.name, weights, listed(evaluation.scores), evaluation.signature);
  record("test", step, evaluation.scores, evaluation.name, {{"weights", weights}, {"fingerprint", fingerprint}});
}

void TrainingLog::update(const TrainingState& state, const UpdateProgress& update) {
  recent_.add(update);
  if (!bar_.is_due()) return;
  const int64_t epoch = state.position.batch > 0 ? state.position.epoch + 1 : std::max<int64_t>(1, state.position.epoch);
  bar_.draw(share_done(state.step, length_),
            fmt::format("step {}, epoch {}, {:.0f} tokens/s, loss {:.3f}, lr {:.2e}", count_of(state.step, length_.updates()),
                        count_of(epoch, length_.max_epochs), recent_.tokens_per_second(), recent_.loss_per_token(), update.lr));
}

void TrainingLog::warn(const std::string& text) {
  bar_.hide();
  log_warning("{}", text);
}

void TrainingLog::say(const std::string& text) {
  bar_.hide();
  log_info("{}", text);
}

void TrainingLog::sync() const {
  metrics_.sync();
  sync_log_file();
}

void TrainingLog::record(const std::string& kind, int64_t step, const std::map<std::string, double>& values, const std::string& set,
                         const std::map<std::string, std::string>& words) {
  nlohmann::ordered_json line = {{"step", step}, {"kind", kind}, {"time", utc_time()}};
  if (!set.empty()) line["set"] = set;
  for (const auto& [name, word] : words) line[name] = word;
  const std::string group = kind + "/" + (set.empty() ? "" : set + "/");
  for (const auto& [name, value] : values) {
    line[name] = value;
    tensorboard_.scalar(group + name, value, step);
  }
  metrics_.write(line);
  tensorboard_.flush();
}

}  // namespace lacuna

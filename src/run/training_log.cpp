#include "run/training_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/peak_memory.h"
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

}  // namespace

TrainingLog::TrainingLog(const std::string& run, const TrainingState& state, const RunLength& length, at::Device device)
    : metrics_(fs::path(run) / run_files::kMetrics, resumed_step(state), state.validation_is_due),
      tensorboard_(fs::path(run) / run_files::kTensorboard, state.step),
      length_(length),
      bar_(share_done(state)),
      device_(device) {}

void TrainingLog::progress(const TrainingProgress& line) {
  last_ = line;
  bar_.hide();
  log_info(
      "step {}, epoch {}, loss {:.4f}, ppl {:.2f}, accuracy {:.3f}, gradient norm {:.3f}, lr {:.3e}, {:.0f} tokens/s, data wait {:.1f} %",
      line.step, line.epoch, line.loss_per_token, std::exp(line.nll_per_token), line.accuracy, line.gradient_norm, line.lr,
      line.tokens_per_second, 100 * line.data_wait);
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
  if (line.penalty_per_token != 0) values["penalty"] = line.penalty_per_token;
  if (line.masks) mask_progress(*line.masks, values);
  record("train", line.step, values);
}

/// A second line of the log, and its values beside the others.
void TrainingLog::mask_progress(const MaskProgress& masks, std::map<std::string, double>& values) {
  log_info("  mask {:.3f}, mask loss {:.4f}, translation loss under the mask {:.4f}, gradient norm {:.3f}", masks.mean,
           masks.loss_per_token, masks.perturbed_loss, masks.gradient_norm);
  values["mask"] = masks.mean;
  values["mask_loss"] = masks.loss_per_token;
  values["mask_perturbed_loss"] = masks.perturbed_loss;
  values["mask_gradient_norm"] = masks.gradient_norm;
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

void TrainingLog::update(const TrainingState& state) {
  if (!bar_.is_due()) return;
  bar_.draw(share_done(state), fmt::format("step {}, {:.0f} tokens/s, loss {:.3f}, lr {:.2e}", state.step, last_.tokens_per_second,
                                           last_.loss_per_token, last_.lr));
}

void TrainingLog::warn(const std::string& text) {
  bar_.hide();
  log_warning("{}", text);
}

void TrainingLog::say(const std::string& text) {
  bar_.hide();
  log_info("{}", text);
}

void TrainingLog::record(const std::string& kind, int64_t step, const std::map<std::string, double>& values, const std::string& set,
                         const std::map<std::string, std::string>& words) {
  nlohmann::ordered_json line = {{"step", step}, {"kind", kind}};
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

double TrainingLog::share_done(const TrainingState& state) const {
  double share = 0;
  if (length_.max_steps > 0) share = static_cast<double>(state.step) / static_cast<double>(length_.max_steps);
  if (length_.max_epochs > 0) {
    const double of_epoch = std::min(static_cast<double>(state.position.batch) / length_.batches_per_epoch, 1.0);
    share = std::max(share, (static_cast<double>(state.position.epoch) + of_epoch) / static_cast<double>(length_.max_epochs));
  }
  return std::min(share, 1.0);
}

}  // namespace lacuna

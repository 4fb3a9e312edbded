#include "train/training_state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

/// Visits every field by name, for writing and for reading.
template <class Self, class Visitor>
void describe_scores(Self& scores, Visitor&& visit) {
  visit("best", scores.best);
  visit("best_step", scores.best_step);
  visit("validations", scores.validations);
  visit("since_best", scores.since_best);
  visit("since_decrease", scores.since_decrease);
  visit("decreases", scores.decreases);
}

template <class Self, class Visitor>
void describe_window(Self& window, Visitor&& visit) {
  visit("loss", window.loss);
  visit("nll", window.nll);
  visit("penalty", window.penalty);
  visit("correct", window.correct);
  visit("tokens", window.tokens);
  visit("updates", window.updates);
  visit("gradient_norm", window.gradient_norm);
}

/// Visits the products; left out of the file where they are unknown.
template <class Self, class Visitor>
void describe_products(Self& products, Visitor&& visit) {
  visit("fp32", products.fp32);
  visit("instruction_set", products.instruction_set);
  visit("bf16", products.bf16);
}

constexpr int64_t kMostCount = int64_t{1} << 53;  // training adds to counts, which must not overflow
constexpr char kAuxiliary[] = "masks", kReturn[] = "went_back";

/// Visits the fields of the auxiliary loss, that of calibrated attention; left out of the file where it was never due.
template <class Self, class Visitor>
void describe_auxiliary(Self& state, Visitor&& visit) {
  visit("updates", state.auxiliary_updates);
  auto& window = state.window.auxiliary;
  auto values = window.values;
  visit("window_objective", values["mask_loss"]);
  visit("window_loss", values["mask_perturbed_loss"]);
  visit("window_mean", values["mask"]);
  visit("window_tokens", window.tokens);
  visit("window_updates", window.updates);
  visit("window_gradient_norm", window.gradient_norm);
  if constexpr (!std::is_const_v<Self>) window.values = window.updates > 0 ? values : decltype(values)();
}

template <class Self, class Visitor>
void describe_state(Self& state, Visitor&& visit) {
  visit("step", state.step);
  visit("optimizer_updates", state.optimizer_updates);
  visit("batches_per_update", state.batches_per_update);
  visit("epoch", state.position.epoch);
  visit("batch", state.position.batch);
  visit("tgt_tokens", state.tgt_tokens);
  visit("hours", state.hours);
  visit("skipped_updates", state.skipped_updates);
  visit("skipped_in_a_row", state.skipped_in_a_row);
  visit("last_saved_step", state.last_saved_step);
  visit("validation_is_due", state.validation_is_due);
  visit("save_is_due", state.save_is_due);
  visit("corpus_fingerprint", state.corpus_fingerprint);
}

/// Visits what a run that has gone back knows of it; left out of the file of others.
template <class Self, class Visitor>
void describe_return(Self& state, Visitor&& visit) {
  visit("from_step", state.went_back_from);
  visit("lr_factor", state.lr_factor);
}

void read_field(const nlohmann::json& value, auto& field) {
  value.get_to(field);
}
void read_field(const nlohmann::json& value, int64_t& field) {
  field = natural_number(value, kMostCount);
}
/// Reads a number that may be null, as JSON writes those that are not finite.
void read_field(const nlohmann::json& value, double& field) {
  field = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

std::string score_name(ValidMetric metric) {
  switch (metric) {
    case ValidMetric::kLoss:
      return "loss";
    case ValidMetric::kPerplexity:
      return "ppl";
    case ValidMetric::kBleu:
      return "bleu";
    case ValidMetric::kChrf:
      return "chrf";
  }
  throw ConfigError("train.metric is unknown");
}

bool lower_is_better(ValidMetric metric) {
  return metric == ValidMetric::kLoss || metric == ValidMetric::kPerplexity;
}

void ScoreHistory::add(double score, int64_t step, const TrainOptions& options) {
  const double gain = lower_is_better(options.metric) ? best - score : score - best;
  const bool is_better = validations == 0 || (std::isfinite(score) && (!std::isfinite(best) || gain > options.min_improvement));
  ++validations;
  if (is_better) {
    best = score;
    best_step = step;
    since_best = since_decrease = 0;
    return;
  }
  ++since_best;
  if (++since_decrease < options.plateau_patience) return;
  since_decrease = 0;
  if (options.schedule == Schedule::kPlateau) ++decreases;
}

std::string TrainingState::to_json() const {
  ordered_json json;
  describe_state(*this, [&](const char* name, const auto& field) { json[name] = field; });
  describe_scores(scores, [&](const char* name, const auto& field) { json["scores"][name] = field; });
  describe_window(window, [&](const char* name, const auto& field) { json["window"][name] = field; });
  if (data_is_over) json["data_is_over"] = true;
  if (!valid_fingerprint.empty()) json["valid_fingerprint"] = valid_fingerprint;
  if (!products.fp32.empty()) describe_products(products, [&](const char* name, const auto& field) { json["products"][name] = field; });
  if (lr_factor != 1) describe_return(*this, [&](const char* name, const auto& field) { json[kReturn][name] = field; });
  if (auxiliary_updates > 0) describe_auxiliary(*this, [&](const char* name, const auto& field) { json[kAuxiliary][name] = field; });
  return json.dump(2) + "\n";
}

TrainingState TrainingState::from_json(const std::string& text, const std::string& place) {
  TrainingState state;
  try {
    nlohmann::json json = parsed_json(text);
    json.at("window").emplace("penalty", 0.0);  // missing in files of early versions
    json.emplace("batches_per_update", uint64_t{0});
    const auto read = [&place](const nlohmann::json& from) {
      return [&from, &place](const char* name, auto& field) {
        try {
          read_field(from.at(name), field);
        } catch (const nlohmann::json::type_error& error) {
          throw CheckpointError(place + ": trainer.json: " + name + ": " + error.what());
        }
      };
    };
    describe_state(state, read(json));
    describe_scores(state.scores, read(json.at("scores")));
    describe_window(state.window, read(json.at("window")));
    if (json.contains("data_is_over")) read_field(json["data_is_over"], state.data_is_over);
    if (json.contains("valid_fingerprint")) json["valid_fingerprint"].get_to(state.valid_fingerprint);
    if (json.contains("products")) json["products"].emplace("bf16", "");  // missing in files of early versions
    if (json.contains("products")) describe_products(state.products, read(json.at("products")));
    if (json.contains(kReturn)) describe_return(state, read(json.at(kReturn)));
    if (json.contains(kAuxiliary)) describe_auxiliary(state, read(json.at(kAuxiliary)));
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(place + ": trainer.json is not one that this version writes: " + error.what());
  }
  return state;
}

}  // namespace lacuna

#include "train/diagnosis.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/device.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/spelling.h"
#include "checkpoint/not_finite.h"
#include "model/activation_watch.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

std::string share_text(int64_t count, int64_t values) {
  return std::to_string(count) + " of " + counted(values, "value") + (count == 1 ? " is" : " are") + " not finite (NaN or infinity)";
}

class FirstNotFinite : public ActivationWatch {
 public:
  void see(const std::string& what, const at::Tensor& values) override {
    if (!found_.empty() || !values.defined()) return;
    const int64_t count = count_not_finite(values);
    if (count > 0) found_ = what + ": " + share_text(count, values.numel());
  }
  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

/// Returns what is not finite in the gradients, from the loss to the input; empty if nothing is.
std::string first_of_gradients(const Optimizer& optimizer) {
  const NamedParameters gradients = optimizer.gradients();
  std::string found;
  int64_t bad = 0;
  for (auto one = gradients.rbegin(); one != gradients.rend(); ++one) {
    const auto& [name, gradient] = *one;
    const int64_t count = gradient.defined() ? count_not_finite(gradient) : 0;
    if (count == 0) continue;
    if (++bad == 1) found = "in the backward pass, first the gradient of " + name + ": " + share_text(count, gradient.numel());
  }
  if (bad > 1) found += "; " + std::to_string(bad) + " of " + std::to_string(gradients.size()) + " gradients have such";
  return found;
}

std::string first_of_batch(const LossFunction& loss, const Batch& batch, const ForwardContext& given, const Optimizer& optimizer) {
  FirstNotFinite watch;
  ForwardContext context = given;
  context.watch = &watch;
  const LossSums sums = loss(batch, context);
  if (!watch.found().empty()) return "in the forward pass, first " + watch.found();
  if (const double value = sums.loss.item<double>(); !std::isfinite(value))
    return "in the forward pass, first the loss, which is " + std::to_string(value) + "; what the last layer gave is finite";
  sums.backward();
  return first_of_gradients(optimizer);
}

ordered_json pairs_of(const Batch& batch, size_t number, const Vocabularies& vocabularies) {
  ordered_json pairs = ordered_json::array();
  const auto ids = [](const std::vector<TokenId>& all, const RaggedShape& shape, int64_t b) {
    return std::vector<TokenId>(all.begin() + shape.begin(b), all.begin() + shape.begin(b) + shape.length(b));
  };
  for (int64_t b = 0; b < batch.src_shape->num_sentences(); ++b) {
    const std::vector<TokenId> src = ids(batch.src, *batch.src_shape, b), tgt = ids(batch.tgt, *batch.tgt_shape, b);
    pairs.push_back({{"batch", number},
                     {"id", batch.src_shape->id(b)},
                     {"src", vocabularies.src->decode(src)},
                     {"tgt", vocabularies.tgt->decode(tgt)},
                     {"src_ids", src},
                     {"tgt_ids", tgt}});
  }
  return pairs;
}

/// Returns the ids under `key`. Throws DataError unless there are any and all are of the vocabulary.
std::vector<TokenId> ids_of(const nlohmann::json& pair, const char* key, const Vocabulary& vocabulary) {
  auto ids = pair.at(key).get<std::vector<TokenId>>();
  if (ids.empty()) throw DataError(std::string("a pair has no ") + key);
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary.size())
      throw DataError(std::string(key) + " holds " + std::to_string(id) + ", and the vocabulary has " + std::to_string(vocabulary.size()) +
                      " pieces");
  return ids;
}

SavedUpdate parsed(const std::string& text, const Vocabularies& vocabularies) {
  const nlohmann::json json = nlohmann::json::parse(text);
  SavedUpdate update;
  update.step = json.at("step").get<int64_t>();
  std::vector<BatchBuilder> builders;
  for (const nlohmann::json& pair : json.at("pairs")) {
    const auto number = pair.at("batch").get<size_t>();
    if (number > builders.size()) throw DataError("its batches are not in order");
    if (number == builders.size()) builders.emplace_back();
    builders[number].add(ids_of(pair, "src_ids", *vocabularies.src), ids_of(pair, "tgt_ids", *vocabularies.tgt),
                         pair.at("id").get<int64_t>());
  }
  update.batches.reserve(builders.size());
  for (BatchBuilder& builder : builders) update.batches.push_back(builder.take());
  if (update.batches.empty()) throw DataError("it has no pairs");
  return update;
}

}  // namespace

std::string first_not_finite(const SavedUpdate& update, const LossFunction& loss, uint64_t seed, Optimizer& optimizer) {
  const ForwardContext context{.training = true, .seed = seed, .step = update.step};
  std::string found;
  for (size_t i = 0; i < update.batches.size() && found.empty(); ++i) found = first_of_batch(loss, *update.batches[i], context, optimizer);
  optimizer.clear_gradients();
  return found;
}

std::string diagnosis_of(const SavedUpdate& update, const LossFunction& loss, uint64_t seed, Optimizer& optimizer) {
  const std::string place = "diagnosis of step " + std::to_string(update.step) + ": ";
  try {
    const std::string found = first_not_finite(update, loss, seed, optimizer);
    return place + (found.empty() ? "repeated with the weights as they are, all values are finite" : found);
  } catch (const std::exception& error) {
    optimizer.clear_gradients();
    if (!is_out_of_memory(error)) throw;
    return place + "its batches do not fit the memory in one piece, and so are not repeated";
  }
}

void SavedUpdate::write(const std::filesystem::path& file, const Vocabularies& vocabularies) const {
  ordered_json json = {{"step", step}, {"pairs", ordered_json::array()}};
  for (size_t i = 0; i < batches.size(); ++i)
    for (ordered_json& pair : pairs_of(*batches[i], i, vocabularies)) json["pairs"].push_back(std::move(pair));
  write_file_atomically(file, json_text(json, 1) + "\n");
}

SavedUpdate SavedUpdate::read(const std::filesystem::path& file, const Vocabularies& vocabularies) {
  const std::string hint = ". Give the bad_batch.json of this run's folder";
  const std::string text = read_file(file);
  try {
    return parsed(text, vocabularies);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(file.string() + " is not what lacuna train writes: " + error.what() + hint);
  } catch (const DataError& error) {
    throw DataError(file.string() + ": " + error.what() + hint);
  }
}

}  // namespace lacuna

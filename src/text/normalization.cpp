#include "text/normalization.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "text/spm_fields.h"

namespace lacuna {
namespace {

constexpr uint64_t kRule = 3;                        // a field of a model file
constexpr uint64_t kNameOfRule = 1;                  // a field of a rule
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, by which pieces spell a space

/// A text of one letter.
class OneLetter : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return is_done_; }
  void Next() override { is_done_ = true; }
  const std::string& value() const override { return letter_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::string letter_ = "a";
  bool is_done_ = false;
};

std::string tiny_model(const std::string& rule) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "char"}, {"vocab_size", "8"}, {"hard_vocab_limit", "false"}, {"normalization_rule_name", rule}, {"minloglevel", "2"}};
  OneLetter text;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &text, &model);
  if (!status.ok()) throw DataError("SentencePiece has no normalization \"" + rule + "\": " + status.ToString());
  return model;
}

}  // namespace

struct Normalizer::Model {
  sentencepiece::SentencePieceProcessor processor;
};

Normalizer::Normalizer(std::string rule) : rule_(std::move(rule)), model_(std::make_unique<Model>()) {
  const std::string model = tiny_model(rule_);
  serialized_ = field_of(model, kRule).value_or("");
  const auto status = model_->processor.LoadFromSerializedProto(model);
  if (!status.ok()) throw MachineError("SentencePiece cannot read its own model: " + status.ToString());
}

Normalizer::~Normalizer() = default;

std::string Normalizer::operator()(const std::string& line) const {
  if (rule_ == "identity") return line;
  std::string text;
  const auto cut = model_->processor.EncodeAsImmutableProto(line);
  for (const auto& piece : cut.pieces()) text += piece.piece();
  for (size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at)) text.replace(at, kSpace.size(), " ");
  return text.substr(text.starts_with(' ') ? 1 : 0);
}

std::string with_rules(const std::string& model, const Normalizer& src, const Normalizer& tgt) {
  return with_field(with_field(model, kRule, src.serialized()), kRuleForTargets, tgt.serialized());
}

std::optional<std::string> model_for_targets(const std::string& model) {
  if (const std::optional<std::string_view> whole = field_of(model, kModelForTargets)) return std::string(*whole);
  const std::optional<std::string_view> rule = field_of(model, kRuleForTargets);
  return rule ? std::optional(with_field(model, kRule, *rule)) : std::nullopt;
}

std::string rule_of(const std::string& model) {
  return std::string(field_of(field_of(model, kRule).value_or(""), kNameOfRule).value_or(""));
}

}  // namespace lacuna

#include "text/normalization.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr uint64_t kRule = 3, kRuleForTargets = 200;  // fields of a model file; from 200 on they are free for others
constexpr uint64_t kNameOfRule = 1;                   // a field of a rule
constexpr std::string_view kSpace = "\xE2\x96\x81";   // U+2581, by which pieces spell a space

/// Reads a serialized protocol buffer from the front, as far as its fields are whole.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  struct Field {
    uint64_t number = 0;
    std::string_view value, whole;  ///< the value, if it is one with a length; the field's bytes
  };

  std::optional<Field> next() {
    constexpr uint64_t kVarint = 0, k64Bits = 1, kWithLength = 2, k32Bits = 5;
    const std::string_view begin = rest_;
    const std::optional<uint64_t> tag = varint();
    if (!tag) return {};
    Field field = {.number = *tag >> 3, .value = {}, .whole = {}};
    const uint64_t type = *tag & 7;
    std::optional<uint64_t> bytes = 0;
    if (type == kVarint && !varint()) return {};
    if (type == kWithLength) bytes = varint();
    if (type == k64Bits) bytes = 8;
    if (type == k32Bits) bytes = 4;
    if (type > k32Bits || type == 3 || type == 4 || !bytes || *bytes > rest_.size()) return {};
    if (type == kWithLength) field.value = rest_.substr(0, *bytes);
    rest_.remove_prefix(*bytes);
    field.whole = begin.substr(0, begin.size() - rest_.size());
    return field;
  }

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    return {};
  }

  std::string_view rest_;
};

std::optional<std::string_view> field_of(std::string_view message, uint64_t number) {
  std::optional<std::string_view> value;
  Fields fields(message);
  while (const auto field = fields.next())
    if (field->number == number) value = field->value;
  return value;
}

void add_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

/// Returns the message with one such field, which has a length.
std::string with_field(std::string_view message, uint64_t number, std::string_view value) {
  std::string bytes;
  bytes.reserve(message.size() + value.size() + 16);
  Fields fields(message);
  while (const auto field = fields.next())
    if (field->number != number) bytes += field->whole;
  add_varint(bytes, number << 3 | 2);
  add_varint(bytes, value.size());
  return bytes += value;
}

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
  const std::optional<std::string_view> rule = field_of(model, kRuleForTargets);
  return rule ? std::optional(with_field(model, kRule, *rule)) : std::nullopt;
}

std::string rule_of(const std::string& model) {
  return std::string(field_of(field_of(model, kRule).value_or(""), kNameOfRule).value_or(""));
}

}  // namespace lacuna

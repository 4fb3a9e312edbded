#include "text/spm_fields.h"

namespace lacuna {
namespace {

void add_varint(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

}  // namespace

std::optional<SpmFields::Field> SpmFields::next() {
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

std::optional<uint64_t> SpmFields::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
  return {};
}

std::optional<std::string_view> field_of(std::string_view message, uint64_t number) {
  std::optional<std::string_view> value;
  SpmFields fields(message);
  while (const auto field = fields.next())
    if (field->number == number) value = field->value;
  return value;
}

std::string without_field(std::string_view message, uint64_t number) {
  std::string bytes;
  bytes.reserve(message.size());
  SpmFields fields(message);
  while (const auto field = fields.next())
    if (field->number != number) bytes += field->whole;
  return bytes;
}

void add_field(std::string& message, uint64_t number, std::string_view value) {
  add_varint(message, number << 3 | 2);
  add_varint(message, value.size());
  message += value;
}

std::string with_field(std::string_view message, uint64_t number, std::string_view value) {
  std::string bytes = without_field(message, number);
  add_field(bytes, number, value);
  return bytes;
}

}  // namespace lacuna

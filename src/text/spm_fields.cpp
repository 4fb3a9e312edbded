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
  if (rest_.empty()) return {};
  const std::string_view begin = rest_;
  const std::optional<uint64_t> tag = varint();
  if (!tag) return {};
  Field field = {.number = *tag >> 3, .value = {}, .whole = {}};
  const uint64_t type = *tag & 7;
  uint64_t bytes = 0;
  if (type == kVarint || type == kWithLength) {
    const std::optional<uint64_t> integer = varint();
    if (!integer) return {};
    if (type == kVarint)
      field.integer = *integer;
    else
      bytes = *integer;
  } else if (type == k64Bits || type == k32Bits) {
    bytes = type == k64Bits ? 8 : 4;
  } else {
    trouble_ = "it has a field of an unknown kind";
    return {};
  }
  if (bytes > rest_.size()) {
    trouble_ = "it is cut short";
    return {};
  }
  field.value = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  field.whole = begin.substr(0, begin.size() - rest_.size());
  return field;
}

std::optional<uint64_t> SpmFields::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) {
      trouble_ = "it is cut short";
      return {};
    }
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
  trouble_ = "it has a number of more than 64 bits";
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

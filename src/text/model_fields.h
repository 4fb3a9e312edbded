#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lacuna {

/// Throws DataError: the file with this name is no SentencePiece model, and why.
[[noreturn]] inline void refuse_model(std::string_view name, const std::string& why) {
  throw DataError(std::string(name) + ": is not a SentencePiece model; expected a .model file (" + why + ")");
}

/// Reads the fields of a SentencePiece model's file, or of a message in it, one after the other: protobuf's wire format
/// (https://protobuf.dev/programming-guides/encoding). Views the message, and `name`, which errors begin with.
class ModelFields {
 public:
  ModelFields(std::string_view message, std::string_view name) : rest_(message), name_(name) {}

  uint64_t number = 0;          ///< of the field
  uint64_t value = 0;           ///< of a varint
  std::string_view bytes = {};  ///< of all other types
  std::string_view whole = {};  ///< the field with its number

  /// Goes to the next field; false at the end. Throws DataError where the bytes are no fields.
  bool next() {
    if (rest_.empty()) return false;
    const std::string_view begin = rest_;
    const uint64_t tag = varint();
    number = tag >> 3;
    bytes = {};
    switch (tag & 7) {
      case 0:
        value = varint();
        break;
      case 1:
        bytes = take(8);
        break;
      case 2:
        bytes = take(varint());
        break;
      case 5:
        bytes = take(4);
        break;
      default:
        refuse_model(name_, "it has a field of an unknown kind");
    }
    whole = begin.substr(0, begin.size() - rest_.size());
    return true;
  }

 private:
  uint64_t varint() {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      result |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return result;
    }
    refuse_model(name_, "it has a number of more than 64 bits");
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) refuse_model(name_, "it is cut short");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  std::string_view name_;
};

}  // namespace lacuna

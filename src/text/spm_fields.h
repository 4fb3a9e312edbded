#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Fields of a SentencePiece model's file, a protocol buffer (https://protobuf.dev/programming-guides/encoding). Those from 200 on are free
/// for others: SentencePiece passes over them.
namespace lacuna {

inline constexpr uint64_t kRuleForTargets = 200;   ///< normalization.h
inline constexpr uint64_t kListedPiece = 201;      ///< piece_list.h, for each piece
inline constexpr uint64_t kModelForTargets = 202;  ///< piece_list.h
inline constexpr uint64_t kStartTag = 203;         ///< piece_list.h

/// Reads a serialized protocol buffer from the front, as far as its fields are whole.
class SpmFields {
 public:
  explicit SpmFields(std::string_view message) : rest_(message) {}

  struct Field {
    uint64_t number = 0;
    uint64_t integer = 0;           ///< the value of a varint
    std::string_view value, whole;  ///< the bytes of all other values; those of the field
  };
  /// Nothing at the end, and where the rest is damaged.
  std::optional<Field> next();
  /// Says what is wrong with the field that next() could not read ("it is cut short"); empty at the end of a whole message.
  const std::string& trouble() const { return trouble_; }

 private:
  std::optional<uint64_t> varint();

  std::string_view rest_;
  std::string trouble_;
};

/// Returns the value of the last field of this number.
std::optional<std::string_view> field_of(std::string_view message, uint64_t number);
/// Returns the message without the fields of this number.
std::string without_field(std::string_view message, uint64_t number);
/// Adds a field that has a length to a message.
void add_field(std::string& message, uint64_t number, std::string_view value);
/// Returns the message with one field of this number, which has a length.
std::string with_field(std::string_view message, uint64_t number, std::string_view value);

}  // namespace lacuna

#include "train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/resources.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// The protocol buffers (tensorflow/core/util/event.proto, framework/summary.proto), with their field numbers:
//
//   Event      { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log = 7; }
//   Summary    { repeated Value value = 1; }      Value { string tag = 1; float simple_value = 2; }
//   SessionLog { enum status = 1; }               status START = 1

/// How a field's value is laid out, the low three bits of its key.
enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

std::string key(uint32_t field, Wire wire) {
  return varint(field << 3 | static_cast<uint32_t>(wire));
}

/// The bytes of a number as they lie in memory: files are little-endian, as the machines are that Lacuna runs on.
template <class Number>
std::string raw(Number number) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof(Number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(Number));
  return bytes;
}

std::string integer_field(uint32_t field, int64_t value) {
  return key(field, Wire::kVarint) + varint(static_cast<uint64_t>(value));
}
std::string double_field(uint32_t field, double value) {
  return key(field, Wire::kFixed64) + raw(value);
}
std::string float_field(uint32_t field, float value) {
  return key(field, Wire::kFixed32) + raw(value);
}
std::string bytes_field(uint32_t field, std::string_view value) {
  return key(field, Wire::kBytes) + varint(value.size()) + std::string(value);
}

/// CRC-32C (Castagnoli): the polynomial 0x1EDC6F41, bits reversed.
uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82F63B78u : 0);
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

/// TFRecord's mask: the checksum of bytes that hold their own checksum would be weak.
std::string masked_checksum(std::string_view bytes) {
  return raw(std::rotr(crc32c(bytes), 15) + 0xA282EAD8u);
}

/// A TFRecord: length, its checksum, the bytes, their checksum.
std::string record(std::string_view bytes) {
  const std::string length = raw(static_cast<uint64_t>(bytes.size()));
  return length + masked_checksum(length) + std::string(bytes) + masked_checksum(bytes);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A name that no earlier start has taken; names in the order of time, as TensorBoard reads them.
fs::path new_event_file(const fs::path& folder) {
  const std::string start = "events.out.tfevents." + std::to_string(static_cast<int64_t>(seconds_since_1970())) + ".";
  const std::string end = host_name() + "." + std::to_string(getpid());
  for (int count = 0;; ++count)
    if (fs::path file = folder / (start + end + "." + std::to_string(count)); !fs::exists(file)) return file;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, int64_t step) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw MachineError("cannot make the folder " + folder.string() + ": " + error.message());
  file_ = new_event_file(folder);
  writer_.emplace(file_);
  write_event(0, bytes_field(3, "brain.Event:2"));
  write_event(step + 1, bytes_field(7, integer_field(1, 1)));
  flush();
}

void TensorBoardWriter::scalar(const std::string& tag, double value, int64_t step) {
  write_event(step, bytes_field(5, bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(value)))));
}

void TensorBoardWriter::flush() {
  writer_->flush();
}

void TensorBoardWriter::write_event(int64_t step, std::string_view what) {
  writer_->write(record(double_field(1, seconds_since_1970()) + integer_field(2, step) + std::string(what)));
}

}  // namespace lacuna

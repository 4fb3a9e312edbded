#include "exchange/file_sink.h"

#include <zlib.h>

#include <bit>
#include <limits>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

static_assert(std::endian::native == std::endian::little);

// Fields of the zip format (APPNOTE.TXT of PKWARE, 4.3).
constexpr uint32_t kMemberMark = 0x04034b50, kSizesMark = 0x08074b50, kListedMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint16_t kVersion = 20;
constexpr uint16_t kFlags = 1 << 3 | 1 << 11;  // sizes follow the bytes; the name is UTF-8
constexpr uint16_t kStored = 0, kMidnight = 0, kFirstDay = 1 << 5 | 1;
constexpr uint32_t kUnixFile = 0100644u << 16;
constexpr uint16_t kByUnix = 3 << 8 | kVersion;

template <class... Fields>
std::string packed(Fields... fields) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&fields), sizeof(fields)), ...);
  return bytes;
}

}  // namespace

void FolderSink::add(const std::string& name, const std::function<void(const PieceWriter&)>& write) {
  FileWriter file(folder_ / name);
  write([&file](std::string_view bytes) { file.write(bytes); });
  file.finish();
}

void ZipSink::put(std::string_view bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

uint32_t ZipSink::place() const {
  if (written_ > std::numeric_limits<uint32_t>::max())
    throw DataError("the package would have more than 4 GiB, which this kind of archive cannot hold; export with --precision int8");
  return static_cast<uint32_t>(written_);
}

void ZipSink::add(const std::string& name, const std::function<void(const PieceWriter&)>& write) {
  Member member{.name = name, .begin = place()};
  const auto name_size = static_cast<uint16_t>(name.size());
  put(packed(kMemberMark, kVersion, kFlags, kStored, kMidnight, kFirstDay, uint32_t{0}, uint32_t{0}, uint32_t{0}, name_size, uint16_t{0}));
  put(name);
  const uint32_t begin = place();
  uLong crc = crc32(0, nullptr, 0);
  write([&](std::string_view bytes) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    put(bytes);
  });
  member.size = place() - begin;
  member.crc32 = static_cast<uint32_t>(crc);
  put(packed(kSizesMark, member.crc32, member.size, member.size));
  members_.push_back(member);
}

void ZipSink::finish() {
  const uint32_t begin = place();
  for (const Member& member : members_) {
    const auto name_size = static_cast<uint16_t>(member.name.size());
    put(packed(kListedMark, kByUnix, kVersion, kFlags, kStored, kMidnight, kFirstDay, member.crc32, member.size, member.size, name_size,
               uint16_t{0}, uint16_t{0}, uint16_t{0}, uint16_t{0}, kUnixFile, member.begin));
    put(member.name);
  }
  const uint32_t size = place() - begin;
  const auto count = static_cast<uint16_t>(members_.size());
  put(packed(kEndMark, uint16_t{0}, uint16_t{0}, count, count, size, begin, uint16_t{0}));
}

}  // namespace lacuna

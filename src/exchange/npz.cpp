#include "exchange/npz.h"

#include <ATen/ATen.h>
#include <zlib.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"

namespace lacuna {
namespace {

static_assert(std::endian::native == std::endian::little);

/// Reads one archive (APPNOTE.TXT of PKWARE, 4.3), checking every number before use.
class NpzReader {
 public:
  NpzReader(std::string_view file, const std::string& name) : file_(file), name_(name) {}

  NpzArrays read() {
    const size_t end = end_record();
    const auto members = number<uint16_t>(end + 10);
    size_t place = number<uint32_t>(end + 16);
    for (uint16_t i = 0; i < members; ++i) place = read_member(place);
    return std::move(arrays_);
  }

 private:
  static constexpr uint32_t kEndMark = 0x06054b50, kListedMark = 0x02014b50, kMemberMark = 0x04034b50;
  static constexpr size_t kEndBytes = 22, kListedBytes = 46, kMemberBytes = 30;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_ + " is not an .npz file: " + what + "; copy it again from where it comes from");
  }
  std::string_view bytes(uint64_t begin, uint64_t count) const {
    if (begin > file_.size() || count > file_.size() - begin) fail("it leads beyond its end; is it cut short?");
    return file_.substr(begin, count);
  }
  template <class Number>
  Number number(uint64_t place) const {
    Number value;
    std::memcpy(&value, bytes(place, sizeof(value)).data(), sizeof(value));
    return value;
  }

  /// Returns where the last record begins, behind which is nothing but a comment.
  size_t end_record() const {
    constexpr size_t kMostComment = 65535;
    for (size_t comment = 0; comment <= kMostComment && comment + kEndBytes <= file_.size(); ++comment) {
      const size_t place = file_.size() - kEndBytes - comment;
      if (number<uint32_t>(place) == kEndMark && number<uint16_t>(place + 20) == comment) return place;
    }
    fail("it has no list of members at its end; is it cut short?");
  }

  /// Reads the member whose entry in the list is at `place`; returns where the next entry is.
  size_t read_member(size_t place) {
    if (number<uint32_t>(place) != kListedMark) fail("its list of members is damaged");
    const auto method = number<uint16_t>(place + 10);
    const auto crc = number<uint32_t>(place + 16), packed = number<uint32_t>(place + 20), size = number<uint32_t>(place + 24);
    const auto name_size = number<uint16_t>(place + 28), extra = number<uint16_t>(place + 30), comment = number<uint16_t>(place + 32);
    const std::string member(bytes(place + kListedBytes, name_size));
    if (method != 0 || packed != size)
      throw DataError(name_ + ": its member " + member + " is compressed, which Marian's are not; save it with numpy.savez");
    if (size == UINT32_MAX) fail("its member " + member + " has more than 4 GiB");
    if (size > file_.size() - total_) fail("its members are larger than the file");  // several may name the same bytes
    total_ += size;
    const size_t begin = number<uint32_t>(place + 42);
    if (number<uint32_t>(begin) != kMemberMark) fail("its member " + member + " is not where the list says");
    const size_t names = size_t{number<uint16_t>(begin + 26)} + number<uint16_t>(begin + 28);
    const std::string_view content = bytes(begin + kMemberBytes + names, size);
    if (crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) != crc)
      fail("its member " + member + " has another checksum than the list says");
    read_array(member, content);
    return place + kListedBytes + name_size + extra + comment;
  }

  /// Returns what stands in a header's literal behind a key, up to one of `ends`.
  static std::optional<std::string_view> value_of(std::string_view header, std::string_view key, char last) {
    const size_t at = header.find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = header.substr(at + key.size());
    const size_t begin = rest.find_first_not_of(": "), end = rest.find(last, begin == std::string_view::npos ? begin : begin + 1);
    if (end == std::string_view::npos) return {};
    return rest.substr(begin, end - begin);
  }

  std::vector<int64_t> shape_of(std::string_view header, const std::string& member) const {
    const std::optional<std::string_view> text = value_of(header, "'shape'", ')');
    if (!text || !text->starts_with('(')) fail("its member " + member + " has no shape");
    std::vector<int64_t> shape;
    for (const char* at = text->data() + 1; at < text->data() + text->size();) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      int64_t size = -1;
      const auto [rest, error] = std::from_chars(at, text->data() + text->size(), size);
      if (error != std::errc() || size < 0 || shape.size() == 8) fail("its member " + member + " has a shape that is none");
      shape.push_back(size);
      at = rest;
    }
    return shape;
  }

  void read_array(const std::string& member, std::string_view content) {
    const std::string array = member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
    if (content.size() < 12 || !content.starts_with("\x93NUMPY")) fail("its member " + member + " is no array");
    uint32_t length = 0;
    const size_t length_bytes = content[6] == 1 ? 2 : 4;  // by the version
    std::memcpy(&length, content.data() + 8, length_bytes);
    const size_t begin = 8 + length_bytes;
    if (length > content.size() - begin) fail("its member " + member + " has a header longer than itself");
    const std::string_view header = content.substr(begin, length), data = content.substr(begin + length);
    const std::string_view type = value_of(header, "'descr'", ',').value_or("");
    if (value_of(header, "'fortran_order'", ',').value_or("") != "False") fail("its member " + member + " is not in the order of C");
    const std::vector<int64_t> shape = shape_of(header, member);
    const bool is_bytes = type == "'|i1'" || type == "'|u1'" || type == "'<i1'" || type == "'<u1'", is_half = type == "'<f2'";
    if (!is_bytes && !is_half && type != "'<f4'")
      throw DataError(name_ + ": its member " + member + " is of type " + std::string(type.substr(0, 20)) +
                      "; expected '<f4', '<f2' or '|i1'");
    const uint64_t bytes_of_float = is_half ? 2 : 4;
    uint64_t expected = is_bytes ? 1 : bytes_of_float;
    for (const int64_t size : shape)
      if (__builtin_mul_overflow(expected, static_cast<uint64_t>(size), &expected)) fail("its member " + member + " has a shape too large");
    if (expected != data.size()) fail("its member " + member + " has another size than its shape says");
    if (arrays_.tensors.contains(array) || arrays_.bytes.contains(array)) fail("it has " + member + " twice");
    if (is_bytes) {
      arrays_.bytes.emplace(array, data);
      return;
    }
    const Tensor tensor = at::empty(shape, is_half ? at::kHalf : at::kFloat);
    if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
    arrays_.tensors.emplace(array, tensor);
  }

  std::string_view file_;
  const std::string& name_;
  uint64_t total_ = 0;
  NpzArrays arrays_;
};

}  // namespace

NpzArrays read_npz(std::string_view file, const std::string& name) {
  return NpzReader(file, name).read();
}

}  // namespace lacuna

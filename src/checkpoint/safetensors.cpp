#include "checkpoint/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kBytesAtATime = 1 << 20;
constexpr uint64_t kLongestHeader = 16 << 20;  // of over 100,000 tensors

struct DtypeName {
  const char* name;
  at::ScalarType dtype;
};
constexpr DtypeName kDtypes[] = {{"F64", at::kDouble}, {"I64", at::kLong},      {"F32", at::kFloat}, {"I32", at::kInt},
                                 {"F16", at::kHalf},   {"BF16", at::kBFloat16}, {"I8", at::kChar},   {"U8", at::kByte}};

std::string name_of(at::ScalarType dtype) {
  for (const DtypeName& known : kDtypes)
    if (known.dtype == dtype) return known.name;
  throw ShapeError("safetensors files cannot hold this type of tensor");
}

std::optional<at::ScalarType> dtype_of(const std::string& name) {
  for (const DtypeName& known : kDtypes)
    if (name == known.name) return known.dtype;
  return {};
}

/// A SAX handler that finds a key which an object repeats. JSON allows that.
class RepeatedKey : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& text() const { return repeated_; }  ///< empty if there is none

  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) repeated_ = name;
    return true;
  }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string repeated_;
};

[[noreturn]] void fail(const FileReader& file, const std::string& what) {
  throw CheckpointError(file.path().string() + " is not a safetensors file: " + what);
}

struct Outgoing {
  std::string name;
  Tensor tensor;  // not yet on the CPU: one at a time is copied there
};

}  // namespace

/// Reads a header, checking every number in it before use.
class SafetensorsReader::Header {
 public:
  explicit Header(const FileReader& file) : file_(file) {}

  /// Returns the entries by place. They fill the data exactly.
  std::vector<Entry> entries(std::string_view text, uint64_t data_bytes) const {
    std::vector<Entry> entries = parse_header(text);
    check_no_gaps(entries, data_bytes);
    return entries;
  }

 private:
  void require(bool condition, const std::string& what) const {
    if (!condition) fail(file_, what);
  }

  std::vector<Entry> parse_header(std::string_view text) const {
    require(!text.empty() && text.front() == '{', "its header is not a JSON object");
    require(!is_too_deep(text), "its header is nested more than " + std::to_string(kDeepestJson) + " levels deep");
    RepeatedKey repeated;  // a pass of its own: the parser with a callback takes quadratic time
    require(nlohmann::json::sax_parse(text, &repeated), "its header is not a JSON object");
    require(repeated.text().empty(), "its header names \"" + repeated.text() + "\" twice");
    const nlohmann::json header = nlohmann::json::parse(text);
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items())
      if (name != "__metadata__") entries.push_back(parse_entry(name, value));
    return entries;
  }

  Entry parse_entry(const std::string& name, const nlohmann::json& value) const {
    const std::string place = "tensor \"" + name + "\" ";
    require(value.is_object() && value.contains("dtype") && value.contains("shape") && value.contains("data_offsets"),
            place + "lacks dtype, shape or data_offsets");
    Entry entry{.name = name, .dtype = at::kFloat, .shape = {}, .begin = 0, .end = 0};
    const nlohmann::json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    require(dtype.is_string(), place + "has a dtype that is no string");
    const std::optional<at::ScalarType> known = dtype_of(dtype.get<std::string>());
    require(known.has_value(), place + "is of type " + dtype.get<std::string>() + "; known: F64, I64, F32, I32, F16, BF16, I8, U8");
    entry.dtype = *known;
    require(shape.is_array() && shape.size() <= 16, place + "has a shape that is no list of at most 16 sizes");
    uint64_t extent = c10::elementSize(entry.dtype), bytes = extent;  // extent: as if no size were 0
    for (const nlohmann::json& size : shape) {
      require(size.is_number_unsigned(), place + "has a size that is no natural number");
      const uint64_t count = size.get<uint64_t>();
      require(!__builtin_mul_overflow(extent, std::max<uint64_t>(count, 1), &extent) && extent <= INT64_MAX,
              place + "has a shape too large for any memory");
      bytes *= count;
      entry.shape.push_back(static_cast<int64_t>(count));
    }
    require(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
            place + "has data_offsets that are not two natural numbers");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    require(entry.begin <= entry.end && entry.end - entry.begin == bytes, place + "has data_offsets that do not fit its shape");
    return entry;
  }

  /// Sorts the entries by place and checks that they fill the data exactly.
  void check_no_gaps(std::vector<Entry>& entries, uint64_t data_bytes) const {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    uint64_t expected = 0;
    for (const Entry& entry : entries) {
      require(entry.begin == expected, "tensor \"" + entry.name + "\" overlaps its neighbour or leaves a gap");
      expected = entry.end;
    }
    require(expected == data_bytes, "its tensors need " + std::to_string(expected) + " bytes, it holds " + std::to_string(data_bytes) +
                                        (expected > data_bytes ? "; is it cut short?" : ""));
  }

  const FileReader& file_;
};

SafetensorsReader::SafetensorsReader(const FileReader& file) : file_(file), size_(file.size()) {
  std::string header(header_length(), '\0');
  take(header.data(), header.size());
  entries_ = Header(file).entries(header, size_ - kLengthBytes - header.size());
}

/// Reads and hashes the next bytes.
void SafetensorsReader::take(char* bytes, uint64_t count) {
  while (count > 0) {
    const size_t now = file_.read(bytes, std::min(count, kBytesAtATime));
    if (now == 0) fail(file_, "it became shorter while it was read");
    hash_.add_piece({bytes, now});
    bytes += now;
    count -= now;
  }
}

uint64_t SafetensorsReader::header_length() {
  if (size_ < kLengthBytes) fail(file_, "it has " + std::to_string(size_) + " bytes, too few for a header; is it cut short?");
  uint64_t length = 0;
  take(reinterpret_cast<char*>(&length), kLengthBytes);
  if (length > size_ - kLengthBytes)
    fail(file_, "its header would have " + std::to_string(length) + " bytes, the file has " + std::to_string(size_));
  if (length > kLongestHeader)
    fail(file_, "its header has " + std::to_string(length) + " bytes; expected at most " + std::to_string(kLongestHeader));
  return length;
}

NamedTensors SafetensorsReader::shapes() const {
  NamedTensors shapes;
  for (const Entry& entry : entries_) shapes.emplace(entry.name, at::empty(entry.shape, at::TensorOptions(entry.dtype).device(at::kMeta)));
  return shapes;
}

std::optional<NamedTensor> SafetensorsReader::next() {
  if (next_ == entries_.size()) return {};
  const Entry& entry = entries_[next_++];
  NamedTensor read = {entry.name, at::empty(entry.shape, at::TensorOptions(entry.dtype))};
  if (entry.end > entry.begin) take(static_cast<char*>(read.second.mutable_data_ptr()), entry.end - entry.begin);
  return read;
}

void write_safetensors(const std::function<void(std::string_view)>& write, const NamedTensors& tensors) {
  std::vector<Outgoing> ordered;
  for (const auto& [name, tensor] : tensors) ordered.push_back({name, tensor});
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Outgoing& a, const Outgoing& b) { return a.tensor.element_size() > b.tensor.element_size(); });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : ordered) {
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", name_of(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // so that the data is aligned
  const uint64_t length = text.size();
  write({reinterpret_cast<const char*>(&length), sizeof(length)});
  write(text);
  for (const auto& [name, tensor] : ordered) {
    const Tensor bytes = tensor.detach().cpu().contiguous();
    write({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
}

FileDigest write_safetensors(const fs::path& file, const NamedTensors& tensors) {
  HashingFileWriter writer(file);
  write_safetensors([&](std::string_view bytes) { writer.write(bytes); }, tensors);
  return writer.finish();
}

NamedTensors read_safetensors(const FileReader& file) {
  SafetensorsReader reader(file);
  NamedTensors tensors;
  while (std::optional<NamedTensor> next = reader.next()) tensors.insert(std::move(*next));
  return tensors;
}

}  // namespace lacuna

#include "train/update_report.h"

#include <cstring>
#include <type_traits>

namespace lacuna {
namespace {

/// Appends values to bytes.
class Writer {
 public:
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes_ += text;
  }
  void operator()(const std::vector<double>& values) {
    (*this)(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  }
  void operator()(const std::map<std::string, double>& values) {
    (*this)(values.size());
    for (const auto& [name, value] : values) {
      (*this)(name);
      (*this)(value);
    }
  }
  template <class T, class Each>
  void all(const std::vector<T>& values, const Each& each) {
    (*this)(values.size());
    for (const T& value : values) each(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a Writer has written.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(T& value) {
    static_assert(std::is_arithmetic_v<T>);
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
  }
  void operator()(std::string& text) {
    const size_t size = count(1);
    text.assign(take(size), size);
  }
  void operator()(std::vector<double>& values) {
    values.resize(count(sizeof(double)));
    if (!values.empty()) std::memcpy(values.data(), take(values.size() * sizeof(double)), values.size() * sizeof(double));
  }
  void operator()(std::map<std::string, double>& values) {
    for (size_t i = count(1); i > 0; --i) {
      std::string name;
      (*this)(name);
      (*this)(values[name]);
    }
  }
  template <class T, class Each>
  void all(std::vector<T>& values, const Each& each) {
    values.resize(count(1));
    for (T& value : values) each(value);
  }
  void require_end() const {
    if (place_ != bytes_.size()) fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw LostRankError("another rank has sent a report of its update that cannot be read. Do all ranks run the same program?");
  }
  /// Returns a number of things of at least `least` bytes each, which must still be there.
  size_t count(size_t least) {
    size_t number = 0;
    (*this)(number);
    if (number > (bytes_.size() - place_) / least) fail();
    return number;
  }
  const char* take(size_t size) {
    if (size > bytes_.size() - place_) fail();
    const char* const begin = bytes_.data() + place_;
    place_ += size;
    return begin;
  }

  const std::string& bytes_;
  size_t place_ = 0;
};

/// Visits every field, for writing and for reading.
template <class Report, class Visitor>
void describe(Report& report, Visitor& visit) {
  visit.all(report.batches, [&](auto& sums) {
    visit(sums.batch);
    visit(sums.loss);
    visit(sums.nll);
    visit(sums.penalty);
    visit(sums.correct);
    visit(sums.tokens);
    visit(sums.has_auxiliary);
    visit(sums.auxiliary);
  });
  for (auto& squares : report.squares) visit(squares);
  visit(report.is_interrupted);
  visit(report.failure);
  visit(report.busy_seconds);
  visit(report.hours);
}

}  // namespace

std::string UpdateReport::bytes() const {
  Writer writer;
  describe(*this, writer);
  return writer.take();
}

UpdateReport UpdateReport::of_bytes(const std::string& bytes) {
  UpdateReport report;
  Reader reader(bytes);
  describe(report, reader);
  reader.require_end();
  return report;
}

}  // namespace lacuna

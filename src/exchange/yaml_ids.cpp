#include "exchange/yaml_ids.h"

#include <spdlog/fmt/fmt.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace lacuna {
namespace {

/// Takes the scalars of one map in turn, keys and values, and refuses all else.
class IdEvents : public YAML::EventHandler {
 public:
  explicit IdEvents(const std::string& name) : name_(name) {}

  std::map<int64_t, std::string> pieces;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { OnScalar(mark, "", 0, "~"); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { fail(mark); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { fail(mark); }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    if (is_in_map_) fail(mark);
    is_in_map_ = true;
  }
  void OnMapEnd() override {}
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override {
    if (!is_in_map_) fail(mark);
    if (!piece_) {
      piece_ = value;
      return;
    }
    int32_t id = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), id);
    if (error != std::errc() || end != value.data() + value.size() || id < 0) fail(mark);
    if (const auto [other, is_new] = pieces.emplace(id, *piece_); !is_new)
      throw DataError(fmt::format("{}:{}: \"{}\" and \"{}\" have one id, {}; expected one for each piece", name_, mark.line + 1,
                                  other->second, *piece_, id));
    piece_.reset();
  }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark) const {
    throw DataError(
        fmt::format("{}:{}: is not a vocabulary of Marian; expected a piece and its id, \"piece\": 3, in each line", name_, mark.line + 1));
  }

  const std::string& name_;
  bool is_in_map_ = false;
  std::optional<std::string> piece_;
};

/// To yaml-cpp, a NUL hides the next character, and \x04 may end the text.
void require_readable(const std::string& text, const std::string& name) {
  const size_t at = text.find_first_of(std::string_view("\0\x04", 2));
  if (at == std::string::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw DataError(
      fmt::format("{}:{}: byte {} is a control character; expected text in UTF-8", name, line, at - (text.rfind('\n', at) + 1) + 1));
}

}  // namespace

std::map<int64_t, std::string> read_yaml_ids(const std::string& text, const std::string& name) {
  require_readable(text, name);
  IdEvents events(name);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(events);
  } catch (const YAML::Exception& error) {
    throw DataError(fmt::format("{}:{}: not YAML: {}", name, error.mark.line + 1, error.msg));
  }
  return std::move(events.pieces);
}

}  // namespace lacuna

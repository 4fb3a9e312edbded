#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/files.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxNodes = 100000;
constexpr size_t kMaxKeys = 1000;  // of one map, whose keys are searched one by one
constexpr size_t kMaxBytes = 16 << 20;

/// Turns yaml-cpp's tree into ours.
class Converter {
 public:
  Converter(std::string file, bool has_lines) : file_(std::move(file)), has_lines_(has_lines) {}

  ConfigNode convert(const YAML::Node& node) { return convert(node, place_of(node), 0); }

 private:
  Place place_of(const YAML::Node& node) const { return {file_, has_lines_ ? node.Mark().line + 1 : 0}; }

  ConfigNode convert(const YAML::Node& node, const Place& place, int depth) {
    if (depth > kMaxDepth) throw ConfigError(place.text() + ": nested more than " + std::to_string(kMaxDepth) + " levels deep");
    if (++nodes_ > kMaxNodes) throw ConfigError(place.text() + ": more than " + std::to_string(kMaxNodes) + " values");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return ConfigNode::scalar(word(node, place), place);
      case YAML::NodeType::Sequence:
        return list(node, place, depth);
      case YAML::NodeType::Map:
        return map(node, place, depth);
      default:
        return ConfigNode::null(place);
    }
  }

  /// File names would end at a NUL.
  static const std::string& word(const YAML::Node& node, const Place& place) {
    if (node.Scalar().find('\0') != std::string::npos)
      throw ConfigError(place.text() + ": \\0 stands for a NUL; expected text without one");
    return node.Scalar();
  }

  ConfigNode list(const YAML::Node& node, const Place& place, int depth) {
    std::vector<ConfigNode> items;
    for (const YAML::Node& item : node) items.push_back(convert(item, place_of(item), depth + 1));
    return ConfigNode::list(std::move(items), place);
  }

  /// The place of a value is that of its key: an error about a map should not name the line after.
  ConfigNode map(const YAML::Node& node, const Place& place, int depth) {
    ConfigNode result = ConfigNode::map({}, place);
    for (const auto& entry : node) {
      const Place here = place_of(entry.first);
      if (!entry.first.IsScalar()) throw ConfigError(here.text() + ": a key must be a word");
      const std::string& key = word(entry.first, here);
      if (const ConfigNode* first = result.find(key))
        throw ConfigError(here.text() + ": key \"" + key + "\" is there twice" +
                          (has_lines_ ? ", first in line " + std::to_string(first->place().line) : "") + "; keep one of them");
      if (result.entries().size() == kMaxKeys)
        throw ConfigError(here.text() + ": a map of more than " + std::to_string(kMaxKeys) + " keys; expected a configuration");
      result.set(key, convert(entry.second, here, depth + 1));
    }
    return result;
  }

  std::string file_;
  bool has_lines_;
  int nodes_ = 0;
};

/// Notes where a document begins.
class DocumentStart : public YAML::EventHandler {
 public:
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark& start) override { mark = start; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Where a second document begins, of which YAML::Load would say nothing: behind `---`, and behind a first one that has ended early, as
/// when later keys are indented less than the first. (YAML::LoadAll does not end on some damaged input.)
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return {};
  return start.mark;
}

/// The line in which the last value of `text` begins, which is the one inside quotes once these are closed; 0 if that makes no YAML of it.
int line_of_open_quote(const std::string& text) {
  for (const char* quote : {"'", "\""}) {
    try {
      YAML::Node node = YAML::Load(text + quote);
      for (int depth = 0; depth < kMaxDepth && (node.IsMap() || node.IsSequence()) && node.size() > 0; ++depth) {
        YAML::Node last;
        for (const auto& entry : node) {
          if (node.IsMap())
            last.reset(entry.second);
          else
            last.reset(entry);
        }
        node.reset(last);
      }
      return node.Mark().line + 1;
    } catch (const YAML::Exception&) {
      continue;  // the other kind of quote
    }
  }
  return 0;
}

/// The first line of `text` that is indented by a tab; 0 if none is.
int line_indented_by_tab(const std::string& text) {
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t indent = text.find_first_not_of(' ', begin), word = text.find_first_not_of(" \t\r", begin), end = text.find('\n', begin);
    if (indent != word && word < end) return line;
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return 0;
}

std::string explained(const YAML::Exception& error, const std::string& text, int& line) {
  if (error.msg != YAML::ErrorMsg::EOF_IN_SCALAR) {
    const int tab = line_indented_by_tab(text);
    const bool is_near = tab > 0 && (tab == line || tab + 1 == line || tab == line + 1);
    return is_near ? error.msg + "; line " + std::to_string(tab) + " is indented by a tab: take spaces" : error.msg;
  }
  if (const int opened = line_of_open_quote(text); opened > 0) line = opened;
  return "a quote is opened here and never closed";
}

[[noreturn]] void fail_for_second_document(const YAML::Mark& start, const std::string& file, bool has_lines) {
  if (!has_lines)
    throw ConfigError(file + ": more follows the first value, from character " + std::to_string(start.pos + 1) +
                      " on; expected one value (a list is written [A, B])");
  throw ConfigError(file + ":" + std::to_string(start.line + 1) +
                    ": a second YAML document begins here, which would not be read; keep one of them, and indent the keys of a map alike");
}

[[noreturn]] void fail_at_byte(const std::string& text, size_t byte, const Place& place, const std::string& what) {
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
  const Place there = {place.file, place.line > 0 ? place.line + static_cast<int>(lines) : 0};
  const size_t in_line = place.line > 0 ? byte - (text.rfind('\n', byte) + 1) : byte;
  throw ConfigError(there.text() + ": byte " + std::to_string(in_line + 1) + what);
}

/// Throws for characters that YAML does not have as they are, and which yaml-cpp misreads: NUL hides the next one, \x04 may end the text,
/// and a carriage return inside a line is no break to it.
void require_no_controls(const std::string& text, const Place& place) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))
      fail_at_byte(text, i, place, " is a carriage return; expected lines that end in LF or CR LF");
    if (static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r')
      fail_at_byte(text, i, place, " is a control character; expected text in UTF-8 without any");
  }
}

ConfigNode parse(const std::string& text, const std::string& file, bool has_lines) {
  const Place start{file, has_lines ? 1 : 0};
  require_utf8(text, start);
  require_no_controls(text, start);
  try {
    // yaml-cpp notices that a text ends inside quotes unless it ends in a line break: then a comment is put behind it.
    const std::string whole = text.ends_with('\n') ? text + "#" : text;
    ConfigNode tree = Converter(file, has_lines).convert(YAML::Load(whole));
    if (const auto second = second_document(whole)) fail_for_second_document(*second, file, has_lines);
    return tree;
  } catch (const YAML::Exception& error) {
    int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    const std::string what = explained(error, text, line);
    throw ConfigError(file + (has_lines && line > 0 ? ":" + std::to_string(line) : "") + ": not YAML: " + what);
  }
}

}  // namespace

void require_utf8(const std::string& text, const Place& place) {
  if (const auto bad = first_invalid_utf8(text)) fail_at_byte(text, *bad, place, " is not UTF-8; expected text in UTF-8, file names too");
}

ConfigNode parse_yaml(const std::string& text, const std::string& file) {
  return parse(text, file, true);
}

ConfigNode parse_yaml_value(const std::string& text, const std::string& place) {
  return parse(text, place, false);
}

ConfigNode read_yaml_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) fail_by(error.value(), path + ": the configuration file cannot be read: ");
  if (!std::filesystem::exists(status)) throw ConfigError(path + ": there is no such configuration file");
  if (std::filesystem::is_directory(status)) throw ConfigError(path + ": is a folder; expected a configuration file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail_by(errno, path + ": cannot be read: ");
  std::string text;
  for (std::array<char, 1 << 16> block; stream.read(block.data(), block.size()), stream.gcount() > 0;) {
    text.append(block.data(), static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxBytes) throw ConfigError(path + ": larger than 16 MB; expected a configuration file");  // a device may be endless
  }
  if (stream.bad()) fail_by(errno, path + ": cannot be read to its end: ");
  return parse_yaml(text, path);
}

}  // namespace lacuna

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// A JSON object of a model that comes in. Functions throw DataError, naming file, key and value, for a value of another type; a key that
/// is not there, or null, has none.
class IncomingJson {
 public:
  IncomingJson(nlohmann::json object, std::string path) : object_(std::move(object)), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// A whole number of 0 or more.
  std::optional<int64_t> number(const std::string& key) const;
  std::optional<double> real(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  /// A text, or the `content` of an object, as tokenizers write their tokens.
  std::optional<std::string> text(const std::string& key) const;
  bool has_list(const std::string& key) const;
  /// A list; empty if the key has no value.
  std::vector<nlohmann::json> list(const std::string& key) const;
  /// An object; an empty one if the key has no value.
  nlohmann::json object(const std::string& key) const;
  /// The number of a key that must be there.
  int64_t required(const std::string& key) const;
  /// Throws DataError unless a flag has a value, which it also has where it is not there.
  void require_flag(const std::string& key, bool value) const;
  /// Throws DataError: the key's value is not what was expected.
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

 private:
  const nlohmann::json* find(const std::string& key) const;

  nlohmann::json object_;
  std::string path_;
};

}  // namespace lacuna

#include "exchange/incoming_files.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// The SHA-256 of bytes that are added piece by piece.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }

  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string text() {
    std::array<unsigned char, 32> digest{};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::string sha256_of(const FileReader& file) {
  Sha256 hash;
  std::string block(1 << 20, '\0');
  while (const size_t count = file.read(block.data(), block.size())) hash.add({block.data(), count});
  return hash.text();
}

}  // namespace

IncomingFiles::IncomingFiles(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (!fs::is_directory(folder_, error)) throw DataError(folder_.string() + " is no folder; expected one that holds a model");
}

bool IncomingFiles::has(const std::string& name) const {
  std::error_code error;
  return fs::exists(folder_ / name, error);
}

std::vector<std::string> IncomingFiles::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error)) names.push_back(entry->path().filename().string());
  if (error) throw DataError(folder_.string() + " cannot be read: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void IncomingFiles::require_file(const std::string& name) const {
  std::error_code error;
  if (fs::is_regular_file(folder_ / name, error)) return;
  throw DataError(path(name) + (has(name) ? " is no file" : " is missing") + "; expected a file of the model");
}

std::string IncomingFiles::text(const std::string& name, uint64_t most) {
  require_file(name);
  std::string bytes = FileReader(folder_ / name).whole(most);
  Sha256 hash;
  hash.add(bytes);
  sha256_[name] = hash.text();
  return bytes;
}

nlohmann::json IncomingFiles::json(const std::string& name, uint64_t most) {
  const std::string bytes = text(name, most);
  if (is_too_deep(bytes))
    throw DataError(path(name) + " is nested more than " + std::to_string(kDeepestJson) + " levels deep; expected a file of a model");
  nlohmann::json value = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) throw DataError(path(name) + " is not JSON; copy it again from where it comes from");
  if (!value.is_object()) throw DataError(path(name) + " holds no JSON object; expected {\"key\": value, ...}");
  return value;
}

NamedTensors IncomingFiles::tensors(const std::string& name) {
  require_file(name);
  sha256_[name] = sha256_of(FileReader(folder_ / name));
  return read_safetensors(FileReader(folder_ / name));
}

bool is_name_of_file(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace lacuna

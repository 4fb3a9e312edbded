#include "serve/clients.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/line_reader.h"

namespace lacuna::serve {
namespace {

constexpr size_t kMostAllowances = 10000;  // addresses that are remembered

/// Says how a client of that API sends its key.
std::string missing_key(const Request& request) {
  std::string message =
      request.authorization.empty() ? "an API key is missing" : "the header Authorization has no API key of the form expected";
  if (request.path.starts_with("/v2/")) return message + ": send the header Authorization: DeepL-Auth-Key KEY";
  if (request.path == "/v1/translate") return message + ": send the header Authorization: Bearer KEY";
  return message + ": send it as api_key, or as the header Authorization: Bearer KEY";
}

}  // namespace

Clients::Clients(const std::string& key_file, int64_t rate) : file_(key_file), rate_(rate) {
  if (!file_.empty()) reload();
}

void Clients::reload() {
  std::map<std::string, std::optional<int64_t>> keys;
  LineReader reader(file_);
  for (std::string text; reader.next(text);) {
    std::istringstream words(text.substr(0, text.find('#')));
    std::string key, rest;
    if (!(words >> key)) continue;
    std::optional<int64_t> rate;
    if (int64_t number = 0; words >> number) rate = number;
    words.clear();
    if (words >> rest || rate.value_or(1) < 1)
      throw DataError(reader.place() + ": expected a key, and behind it at most one whole number: characters a minute, 1 or more");
    if (!keys.emplace(key, rate).second) throw DataError(reader.place() + ": this key stands in an earlier line, too");
  }
  if (keys.empty()) throw DataError(file_ + ": there is no key in it; expected one a line");
  keys_ = std::move(keys);
}

std::string Clients::client_of(const Request& request, const std::string& key_in_body) const {
  if (!need_keys()) return request.address;
  std::string key = key_in_body;
  for (const std::string_view scheme : {"Bearer ", "DeepL-Auth-Key "})
    if (key.empty() && request.authorization.starts_with(scheme)) key = request.authorization.substr(scheme.size());
  if (key.empty()) throw RequestError(403, missing_key(request));
  if (!keys_.contains(key)) throw RequestError(403, "the API key is not known");
  return key;
}

void Clients::charge(const std::string& client, int64_t characters) {
  require_allowed(client, characters);
  charged_[need_keys() ? client : ""] += characters;
}

int64_t Clients::characters_of(const std::string& client) const {
  const auto found = charged_.find(need_keys() ? client : "");
  return found == charged_.end() ? 0 : found->second;
}

/// Takes characters from what a client has left. Throws RequestError 429 if that is too little.
void Clients::require_allowed(const std::string& client, int64_t characters) {
  const auto key = keys_.find(client);
  const int64_t of_key = key == keys_.end() ? rate_ : key->second.value_or(rate_);
  if (of_key == 0) return;
  const auto rate = static_cast<double>(of_key);
  const Clock::time_point now = Clock::now();
  if (allowances_.size() >= kMostAllowances && !allowances_.contains(client))
    std::erase_if(allowances_, [&](const auto& one) { return now - one.second.at > std::chrono::minutes(1); });
  if (allowances_.size() >= kMostAllowances && !allowances_.contains(client))
    throw RequestError(429, "too many clients ask at once; ask again later", 60);
  Allowance& left = allowances_.try_emplace(client, Allowance{rate, now}).first->second;
  left.characters = std::min(rate, left.characters + rate / 60 * std::chrono::duration<double>(now - left.at).count());
  left.at = now;
  const double needed = std::min(rate, static_cast<double>(characters));
  if (left.characters < needed)
    throw RequestError(429, "more than " + std::to_string(of_key) + " characters a minute; ask again later",
                       static_cast<int>(std::ceil((needed - left.characters) / rate * 60)));
  left.characters -= static_cast<double>(characters);
}

}  // namespace lacuna::serve

#include "serve/trusted_proxies.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace lacuna::serve {
namespace {

using boost::asio::ip::address;

/// Reads an address; one of IPv4 within IPv6 (::ffff:10.0.0.1) is that of IPv4.
std::optional<address> address_in(const std::string& text) {
  boost::system::error_code error;
  address read = boost::asio::ip::make_address(text, error);
  if (error) return {};
  if (read.is_v6() && read.to_v6().is_v4_mapped()) read = make_address_v4(boost::asio::ip::v4_mapped, read.to_v6());
  return read;
}

/// Reads an address of the header, which may have a port: 10.0.0.1:443, [::1]:443.
std::optional<address> forwarded_address(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  std::erase_if(text, is_space);
  if (text.starts_with('[')) text = text.substr(1, text.find(']') - 1);
  if (std::ranges::count(text, ':') == 1) text = text.substr(0, text.find(':'));
  return address_in(text);
}

std::vector<unsigned char> bytes_of(const address& read) {
  if (read.is_v4()) {
    const auto bytes = read.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = read.to_v6().to_bytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TrustedProxies::TrustedProxies(const std::vector<std::string>& places) {
  networks_.reserve(places.size());
  for (const std::string& place : places) {
    const size_t slash = std::min(place.find('/'), place.size());
    const std::optional<address> read = address_in(place.substr(0, slash));
    const int most = read && read->is_v4() ? 32 : 128;
    int bits = most;
    const char* const end = place.data() + place.size();
    const bool has_bits = slash == place.size() || std::from_chars(place.data() + slash + 1, end, bits).ptr == end;
    if (!read || !has_bits || bits < 0 || bits > most || slash + 1 == place.size())
      throw UsageError("--trusted-proxy is \"" + place + "\"; expected an address or a network, such as 127.0.0.1, ::1 or 10.0.0.0/8");
    networks_.push_back({*read, bits});
  }
}

bool TrustedProxies::are_trusted(const address& of_client) const {
  const std::vector<unsigned char> client = bytes_of(of_client);
  return std::ranges::any_of(networks_, [&](const Network& network) {
    const std::vector<unsigned char> bytes = bytes_of(network.address);
    if (bytes.size() != client.size()) return false;
    for (int bit = 0; bit < network.bits; ++bit) {
      const auto byte = static_cast<size_t>(bit / 8);
      const unsigned mask = 0x80U >> static_cast<unsigned>(bit % 8);
      if (((bytes[byte] ^ client[byte]) & mask) != 0) return false;
    }
    return true;
  });
}

std::string TrustedProxies::client_of(const std::string& peer, const std::string& forwarded) const {
  std::optional<address> client = address_in(peer);
  if (networks_.empty() || !client) return peer;
  for (size_t end = forwarded.size(); are_trusted(*client) && end != std::string::npos && end > 0;) {
    const size_t comma = forwarded.rfind(',', end - 1);
    const size_t begin = comma == std::string::npos ? 0 : comma + 1;
    const std::optional<address> before = forwarded_address(forwarded.substr(begin, end - begin));
    if (!before) break;
    client = before;
    end = comma;
  }
  return client->to_string();
}

}  // namespace lacuna::serve

#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>
#include <vector>

namespace lacuna::serve {

/// The proxies that are believed when they say for whom they ask.
class TrustedProxies {
 public:
  /// `places` are addresses, or networks such as 10.0.0.0/8. Throws UsageError for what is neither.
  explicit TrustedProxies(const std::vector<std::string>& places);

  /// Returns the address of who sent a request: that of `peer`, who is connected; where it is trusted, the last of the addresses in
  /// `forwarded`, the header X-Forwarded-For, that is not. What stands before something that is no address is not believed.
  std::string client_of(const std::string& peer, const std::string& forwarded) const;

 private:
  struct Network {
    boost::asio::ip::address address;
    int bits;
  };
  bool are_trusted(const boost::asio::ip::address& address) const;

  std::vector<Network> networks_;
};

}  // namespace lacuna::serve

#pragma once

#include <algorithm>
#include <deque>

namespace lacuna {

/// A cache of the last few values that were made.
template <class X>
class RecentValues {
 public:
  /// Returns the value for which `matches` holds, else the result of `make`. The reference is valid until some other values are made.
  template <class Matches, class Make>
  const X& get(const Matches& matches, const Make& make) {
    constexpr size_t kCapacity = 8;
    const auto found = std::find_if(values_.begin(), values_.end(), matches);
    if (found != values_.end()) return *found;
    values_.push_front(make());
    if (values_.size() > kCapacity) values_.pop_back();
    return values_.front();
  }

 private:
  std::deque<X> values_;
};

}  // namespace lacuna

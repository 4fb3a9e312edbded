#pragma once

#include <algorithm>
#include <deque>

namespace lacuna {

/// The last few things that were made, for whoever asks for the same few again and again.
template <class X>
class Recent {
 public:
  /// The one that `is_it` holds for, else what `make` gives. It is there until some others have been made.
  template <class IsIt, class Make>
  const X& get(const IsIt& is_it, const Make& make) {
    constexpr size_t kKept = 8;
    const auto found = std::find_if(kept_.begin(), kept_.end(), is_it);
    if (found != kept_.end()) return *found;
    kept_.push_front(make());
    if (kept_.size() > kKept) kept_.pop_back();
    return kept_.front();
  }

 private:
  std::deque<X> kept_;
};

}  // namespace lacuna

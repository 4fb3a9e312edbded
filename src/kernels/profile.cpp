#include "kernels/profile.h"

namespace lacuna {

const char* name_of(ProfilePart part) {
  static constexpr const char* kNames[] = {"rest",       "products", "rounding and biases", "attention", "norms", "activations",
                                           "embeddings", "loss",     "optimizer",           "data wait"};
  static_assert(std::size(kNames) == std::size(kProfileParts));
  return kNames[static_cast<size_t>(part)];
}

Profile::Profile() : since_(Clock::now()) {
  TimedPart::current_ = this;
}

Profile::~Profile() {
  end();
}

void Profile::end() {
  TimedPart::current_ = nullptr;
}

void Profile::set_backward(bool is_backward) {
  count_time();
  is_backward_ = is_backward;
}

ProfilePart Profile::enter(ProfilePart part, double work) {
  count_time();
  const ProfilePart outer = part_;
  part_ = part;
  ++sum().calls;
  sum().work += work;
  return outer;
}

void Profile::leave(ProfilePart outer) {
  count_time();
  part_ = outer;
}

void Profile::count_time() {
  const Clock::time_point now = Clock::now();
  sum().seconds += std::chrono::duration<double>(now - since_).count();
  since_ = now;
}

}  // namespace lacuna

#include "kernels/profile.h"

namespace lacuna {

const char* name_of(ProfilePart part) {
  switch (part) {
    case ProfilePart::kProducts:
      return "products";
    case ProfilePart::kLinear:
      return "rounding and biases";
    case ProfilePart::kAttention:
      return "attention";
    case ProfilePart::kNorm:
      return "norms";
    case ProfilePart::kActivation:
      return "activations";
    case ProfilePart::kEmbedding:
      return "embeddings";
    case ProfilePart::kLoss:
      return "loss";
    case ProfilePart::kOptimizer:
      return "optimizer";
    case ProfilePart::kDataWait:
      return "data wait";
    case ProfilePart::kRest:
      break;
  }
  return "rest";
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

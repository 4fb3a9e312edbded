#pragma once

#include <chrono>

namespace gloo {

/// Declares what LibTorch's header calls of Gloo's class. Objects are made and used inside of LibTorch only.
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo

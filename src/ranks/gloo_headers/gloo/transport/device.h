#pragma once

/// Names that LibTorch's header points to, and never looks into.
namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport

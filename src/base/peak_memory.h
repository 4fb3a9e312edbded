#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>
#include <sys/resource.h>

namespace lacuna {

/// The most memory this process has had, in MiB; of a GPU's, what its tensors took.
inline double peak_mebibytes(c10::Device device) {
  if (device.is_cpu()) {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / (1 << 10);
  }
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::DeviceIndex{0};
  return static_cast<double>(c10::getDeviceAllocator(device.type())->getDeviceStats(index).allocated_bytes[all].peak) / (1 << 20);
}

}  // namespace lacuna

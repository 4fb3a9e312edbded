#include "kernels/rounded_copies.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace lacuna {
namespace {

std::mutex copies_mutex;
std::vector<const RoundedCopies*> all_copies;
std::atomic<bool> has_copies = false;  // a look without the mutex

}  // namespace

RoundedCopies::RoundedCopies() {
  const std::lock_guard<std::mutex> lock(copies_mutex);
  all_copies.push_back(this);
  has_copies = true;
}

RoundedCopies::~RoundedCopies() {
  const std::lock_guard<std::mutex> lock(copies_mutex);
  std::erase(all_copies, this);
  has_copies = !all_copies.empty();
}

void RoundedCopies::set_current(const at::Tensor& parameter, const at::Tensor& copy) {
  const std::lock_guard<std::mutex> lock(copies_mutex);
  copies_[parameter.unsafeGetTensorImpl()] = {copy, parameter.const_data_ptr(), static_cast<uint32_t>(parameter._version())};
}

void RoundedCopies::round(const at::Tensor& values) {
  set_current(values, values.detach().to(at::kBFloat16));
}

at::Tensor RoundedCopies::of(const at::Tensor& parameter) {
  if (!has_copies) return {};
  const std::lock_guard<std::mutex> lock(copies_mutex);
  for (const RoundedCopies* copies : all_copies) {
    const auto found = copies->copies_.find(parameter.unsafeGetTensorImpl());
    if (found == copies->copies_.end()) continue;
    const auto& [copy, values, version] = found->second;
    if (values == parameter.const_data_ptr() && version == parameter._version()) return copy;
  }
  return {};
}

}  // namespace lacuna

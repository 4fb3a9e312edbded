#include "train/queued_update.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

namespace lacuna {

QueuedUpdate::QueuedUpdate(const at::Tensor& record)
    : record_(record.is_cpu() ? record.clone() : record.to(at::kCPU, record.scalar_type(), /*non_blocking=*/true)) {
  if (record.is_cpu()) return;
  done_.emplace(record.device().type());
  done_->record(c10::impl::VirtualGuardImpl(record.device().type()).getStream(record.device()));
}

UpdateRecord QueuedUpdate::read() const {
  if (done_) done_->synchronize();
  UpdateRecord record;
  std::memcpy(&record, record_.const_data_ptr(), sizeof(record));
  return record;
}

}  // namespace lacuna

#include "train/unread_sums.h"

#include <ATen/ATen.h>

#include <utility>

namespace lacuna {
namespace {

/// Returns an asynchronous copy on the CPU, complete once something later on the device was waited for.
Tensor copied_to_cpu(const Tensor& x) {
  return x.defined() ? x.detach().to(x.options().device(at::kCPU), /*non_blocking=*/true) : x;
}

/// Returns a number on the CPU.
template <class T>
T number_of(const Tensor& x) {
  if (x.scalar_type() == at::kDouble) return static_cast<T>(*x.const_data_ptr<double>());
  if (x.scalar_type() == at::kLong) return static_cast<T>(*x.const_data_ptr<int64_t>());
  return x.item<T>();
}

}  // namespace

UnreadSums::UnreadSums(int64_t batch, LossSums losses) : batch_(batch), losses_(std::move(losses)), device_loss_(losses_.loss.detach()) {
  for (Tensor* sum : {&losses_.loss, &losses_.nll, &losses_.correct, &losses_.penalty}) *sum = copied_to_cpu(*sum);
  for (auto& [name, sum] : losses_.auxiliary.values) sum = copied_to_cpu(sum);
  if (losses_.has_auxiliary()) losses_.auxiliary.objective = losses_.auxiliary.objective.detach();
}

BatchSums UnreadSums::read() const {
  BatchSums sums = {.batch = batch_,
                    .loss = number_of<double>(losses_.loss),
                    .nll = number_of<double>(losses_.nll),
                    .penalty = losses_.penalty.defined() ? number_of<double>(losses_.penalty) : 0,
                    .correct = number_of<int64_t>(losses_.correct),
                    .tokens = losses_.tokens,
                    .has_auxiliary = losses_.has_auxiliary()};
  for (const auto& [name, sum] : losses_.auxiliary.values) sums.auxiliary[name] = number_of<double>(sum);
  return sums;
}

}  // namespace lacuna

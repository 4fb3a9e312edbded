#include "ranks/gpu_group.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/error.h"

#if LACUNA_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "ranks/gloo_group.h"
#include "ranks/rendezvous.h"
#endif

namespace lacuna {

std::string shared_device(const std::vector<std::string>& devices) {
  for (const std::string& device : devices)
    if (std::ranges::count(devices, device) > 1) return device;
  return "";
}

#if LACUNA_CUDA
namespace {

bool are_on_gpus(const Messages& messages) {
  return std::ranges::any_of(messages, [](const Message& message) { return message.values.is_cuda(); });
}

/// Messages by NCCL. The host does not wait for them: the current stream does.
class NcclTransfer : public Transfer {
 public:
  explicit NcclTransfer(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override { work_->wait(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

class NcclGroup : public Group {
 public:
  NcclGroup(Group& group, at::Device device) : Group(group.rank(), group.size(), group.members(), group.start_id()), group_(group) {
    // The watch finds out who is lost, and ends the process: LibTorch's own threads for that would end it with a message of theirs.
    for (const char* const name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING", "TORCH_NCCL_DUMP_ON_TIMEOUT"})
      setenv(name, "0", 0);
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::hours(20 * 24);
    try {
      nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", store_of(group)), rank(), size(),
                                                          options);
      nccl_->eagerConnectSingleDevice(device);
    } catch (const std::exception& error) {
      throw MachineError(fmt::format("{}, {}: NCCL cannot connect the ranks' GPUs: {}. NCCL_DEBUG=INFO makes it say more", name_of(rank()),
                                     device.str(), plain_message(error)));
    }
  }

  std::vector<std::string> gather(const std::string& bytes) override { return group_.gather(bytes); }
  std::string broadcast(const std::string& bytes) override { return group_.broadcast(bytes); }
  std::vector<std::string> gather_to_all(const std::string& bytes) override { return group_.gather_to_all(bytes); }

  /// NCCL knows no tags: what two ranks send each other arrives in the order of the exchanges.
  std::unique_ptr<Transfer> exchange(const Messages& sent, const Messages& received, int tag) override {
    if (!are_on_gpus(sent) && !are_on_gpus(received)) return group_.exchange(sent, received, tag);
    nccl_->startCoalescing();
    for (const auto& [values, rank] : sent) {
      std::vector<at::Tensor> tensors = {values};
      nccl_->send(tensors, rank, 0);
    }
    for (const auto& [values, rank] : received) {
      std::vector<at::Tensor> tensors = {values};
      nccl_->recv(tensors, rank, 0);
    }
    return std::make_unique<NcclTransfer>(nccl_->endCoalescing());
  }

 private:
  Group& group_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
};

}  // namespace

std::string device_of_rank(const std::string& device, const RankPlace& place) {
  if (device != "cuda") return device;
  return fmt::format("cuda:{}", place.local_rank % std::max(1, static_cast<int>(at::cuda::device_count())));
}

std::unique_ptr<Group> join_gpus(Group& group, at::Device device) {
  c10::cuda::set_device(device.index());
  return std::make_unique<NcclGroup>(group, device);
}
#else
std::string device_of_rank(const std::string& device, const RankPlace& /*place*/) {
  return device;
}

std::unique_ptr<Group> join_gpus(Group& /*group*/, at::Device device) {
  throw MachineError(fmt::format("{}: this program was built for the CPU only", device.str()));
}
#endif

}  // namespace lacuna

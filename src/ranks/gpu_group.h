#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "ranks/group.h"
#include "ranks/place.h"

/// Ranks that train on GPUs.
namespace lacuna {

/// Returns the GPU of a rank for the option `device`: of `cuda`, that of its number among the ranks of its machine, beginning anew where
/// they are more than the machine's GPUs; any other device is returned as it is.
std::string device_of_rank(const std::string& device, const RankPlace& place);

/// Returns which of these devices of ranks ("node7 cuda:0") is another rank's, too; empty if each is one rank's alone.
std::string shared_device(const std::vector<std::string>& devices);

/// Returns a group of the same ranks whose tensors on GPUs travel from GPU to GPU, by NCCL; its bytes, and tensors of the CPU, travel as
/// those of `group`, which must outlive it and comes from join(). `device` is this rank's GPU and no other rank's. Collective. Throws
/// MachineError where NCCL cannot connect them, and always in a program without CUDA.
std::unique_ptr<Group> join_gpus(Group& group, at::Device device);

}  // namespace lacuna

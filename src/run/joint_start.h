#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/durable_files.h"
#include "checkpoint/safetensors.h"
#include "config/options.h"
#include "data/batch.h"
#include "ranks/group.h"
#include "ranks/place.h"
#include "text/vocabulary.h"
#include "train/products.h"
#include "train/resume.h"

/// What the ranks of a run need of each other, beside the updates themselves. Functions on a Group that is not const are collective.
namespace lacuna {

/// Lets a rank beside the first only say what ends it, until training begins.
void speak_as_rank(const Group& group);

/// Gives each of several ranks its GPU where `options.device` is cuda, and returns the group in which they train; null if that is `group`:
/// on CPUs, and where ranks share a GPU, which rank 0 warns of.
std::unique_ptr<Group> take_gpus(Options& options, const RankPlace& place, Group& group);

/// Throws ConfigError unless all ranks have the same program, the same configuration and the same contents in the files that it names: the
/// error says which rank differs, in what, and both values. Where files lie, threads, devices and data.cache are each machine's own.
void require_same_start(Group& group, const Options& options);

/// Throws ConfigError unless all ranks multiply matrices as rank 0 does.
void require_same_products(Group& group, const Products& products);

/// Returns rank 0's point at all ranks, with weights and state.
std::optional<ResumePoint> shared_point(Group& group, std::optional<ResumePoint> point);

/// Returns rank 0's vocabularies at all ranks.
Vocabularies shared_vocabularies(Group& group, const Vocabularies& vocabularies);

/// Returns rank 0's tensors at all ranks.
NamedTensors shared_tensors(Group& group, const NamedTensors& tensors);

/// Returns the batches of all ranks in the order of the update that they are of, at rank 0; elsewhere none.
std::vector<BatchPtr> gathered_batches(Group& group, const std::vector<BatchPtr>& own);

/// Returns the signal that a rank has received, and lets all others go on as if they had; 0 if none has.
int agreed_interrupt(Group& group);

/// Folders for the token caches of ranks that do not see rank 0's run folder: one on each machine, removed in the end.
class OwnCache {
 public:
  /// `sees_run` is true at ranks whose run folder is rank 0's.
  OwnCache(Group& group, bool sees_run);

  /// Returns true at the one rank of a machine that makes the cache for the others there.
  bool is_maker() const { return made_ != nullptr; }
  /// Returns the folder of this machine; empty at ranks that need none.
  const std::string& folder() const { return folder_; }

 private:
  std::unique_ptr<TemporaryFolder> made_;
  std::string folder_;
};

/// Returns the number of ranks that share this machine's memory.
int64_t ranks_on_machine(Group& group);

/// Sets the threads of a rank: `wanted`, or, if that is 0 and OMP_NUM_THREADS is not set, an equal share of the CPUs that this process and
/// others of its machine may run on. Returns a sentence for the log if OMP_NUM_THREADS leaves most of them idle; else nothing.
std::string share_threads(Group& group, int64_t wanted);

/// Returns how many of an update's batches each rank computes: "3 + 3 + 2".
std::string shares_text(int64_t batches, int64_t ranks);

}  // namespace lacuna

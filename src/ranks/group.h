#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// The exit code of a process that has lost another one: EX_TEMPFAIL, to be tried again.
inline constexpr int kLostRankCode = 75;

/// Another process of the run is gone, or does not answer. The same command goes on from the newest checkpoint.
class LostRankError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return kLostRankCode; }
};

/// A contiguous tensor that goes to another rank, or comes from it.
struct Message {
  at::Tensor values;
  int rank = 0;
};
using Messages = std::vector<Message>;

/// Messages on their way. Their tensors must live, and sent ones keep their values, until they have arrived.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Returns once all messages are sent and received; where they go from GPU to GPU, what the current stream does next comes after
  /// them. Throws LostRankError if another rank is gone.
  virtual void wait() = 0;
};

/// A process that serves a run.
struct Member {
  std::string host;
  int64_t pid = 0;
  std::string address = {};  ///< numeric, at which the others reach it; empty for a single process
};

/// Returns what this process is.
Member this_member();
/// Returns a text that no other start of a run has.
std::string new_start_id();

/// The tags that callers of Group may use are below this one.
inline constexpr int kTagsEnd = 1 << 30;

/// The processes that serve one run, its ranks, as each of them sees them. The functions on bytes are collective: all ranks
/// call the same ones in the same order, and each returns when what it needs of the others is there.
class Group {
 public:
  /// `members` are those of all ranks; without them, messages name ranks alone.
  Group(int rank, int size, std::vector<Member> members = {}, std::string start_id = "")
      : rank_(rank), size_(size), members_(std::move(members)), start_id_(std::move(start_id)) {}
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// The number of this process, from 0.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_alone() const { return size_ == 1; }
  /// Rank 0 alone writes files.
  bool is_first() const { return rank_ == 0; }
  /// Returns what is known of all ranks, in their order; empty if nothing is.
  const std::vector<Member>& members() const { return members_; }
  /// Returns "rank 2 (node7, pid 4711)", for messages.
  std::string name_of(int rank) const;
  /// Returns what all ranks of this start of the run have in common, and no other start.
  const std::string& start_id() const { return start_id_; }

  /// Returns the bytes of all ranks, in the order of ranks; at ranks other than 0 nothing.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  /// Returns the bytes of rank 0; what other ranks give is not read.
  virtual std::string broadcast(const std::string& bytes) = 0;
  /// Returns the bytes of all ranks, in the order of ranks, at every rank: for a few bytes, as all pass through rank 0.
  virtual std::vector<std::string> gather_to_all(const std::string& bytes) = 0;

  /// Starts to send messages to other ranks, and to receive messages from others: at most one each way between two ranks. What is sent
  /// under a tag (0 to kTagsEnd - 1) is received under it, into a tensor of as many bytes. Several exchanges may be on their way at
  /// once; all ranks make them in the same order, those of one tag at least.
  virtual std::unique_ptr<Transfer> exchange(const Messages& sent, const Messages& received, int tag) = 0;

 private:
  int rank_, size_;
  std::vector<Member> members_;
  std::string start_id_;
};

/// The group of a run that one process serves: it says nothing to anybody, so that callers need no `if`.
class AloneGroup : public Group {
 public:
  AloneGroup();
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  std::string broadcast(const std::string& bytes) override { return bytes; }
  std::vector<std::string> gather_to_all(const std::string& bytes) override { return {bytes}; }
  std::unique_ptr<Transfer> exchange(const Messages& sent, const Messages& received, int tag) override;
};

/// Returns the group of a process that works alone.
Group& no_group();

}  // namespace lacuna

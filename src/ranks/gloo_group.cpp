#include "ranks/gloo_group.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "base/resources.h"
#include "ranks/lobby.h"
#include "ranks/rendezvous.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

using std::chrono::milliseconds;

// A message of bytes is a frame: its length, and as much of it as fits. The rest follows by itself.
constexpr int64_t kFrameBytes = 1024;
constexpr size_t kBytesInFrame = kFrameBytes - sizeof(uint64_t);
constexpr int kFrameTag = kTagsEnd, kRestTag = kTagsEnd + 1;

/// Stops the lines that LibTorch writes to stderr about connections: what they tell is in our errors, with the name of the rank.
void silence_libtorch() {
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
    c10::initLogging();
  });
}

/// Raises the limit of open files where connections to all ranks need more.
void allow_connections(int ranks) {
  const rlim_t wanted = 1024 + 4 * static_cast<rlim_t>(ranks);
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void fail_with(const std::string& other, const std::exception& error) {
  const std::string text = plain_message(error);
  const bool is_silent = text.find("imed out") != std::string::npos;
  throw LostRankError(fmt::format("{} {} ({}). The same command goes on from the newest checkpoint", other,
                                  is_silent ? "does not answer" : "is gone", text));
}

/// Messages by Gloo, which knows tensors of the CPU alone: those of a GPU pass through copies. A message of no bytes is none.
class GlooTransfer : public Transfer {
 public:
  /// `limit` is how long one message may take.
  GlooTransfer(const Group& group, c10d::ProcessGroupGloo& gloo, milliseconds limit) : group_(group), gloo_(gloo), limit_(limit) {}

  void send(const Message& message, int tag) {
    const at::Tensor values = message.values.cpu();
    start(message.rank, values, values, [&](std::vector<at::Tensor>& tensors) { return gloo_.send(tensors, message.rank, tag); });
  }

  void receive(const Message& message, int tag) {
    const at::Tensor& values = message.values;
    const at::Tensor here = values.is_cpu() ? values : at::empty(values.sizes(), values.options().device(at::kCPU));
    start(message.rank, here, values, [&](std::vector<at::Tensor>& tensors) { return gloo_.recv(tensors, message.rank, tag); });
  }

  void wait() override {
    for (const Part& part : parts_) {
      try {
        part.work->wait(limit_);
      } catch (const std::exception& error) {
        fail_with(group_.name_of(part.rank), error);
      }
      if (!part.there.is_same(part.here)) at::Tensor(part.there).copy_(part.here);
    }
  }

 private:
  struct Part {
    int rank;
    at::Tensor here, there;  // what Gloo reads or writes, and where the values are to be in the end
    c10::intrusive_ptr<c10d::Work> work;
  };

  template <class Start>
  void start(int rank, const at::Tensor& here, const at::Tensor& there, const Start& start) {
    if (here.numel() == 0) return;
    std::vector<at::Tensor> tensors = {here};
    try {
      parts_.push_back({rank, here, there, start(tensors)});
    } catch (const std::exception& error) {
      fail_with(group_.name_of(rank), error);
    }
  }

  const Group& group_;
  c10d::ProcessGroupGloo& gloo_;
  milliseconds limit_;
  std::vector<Part> parts_;
};

class GlooGroup : public Group {
 public:
  /// Connects to all others, which have `connecting` to answer.
  GlooGroup(const RankPlace& place, const Rendezvous& all, milliseconds connecting, milliseconds operation)
      : Group(place.rank, place.size, all.members, all.start_id), operation_(operation), store_(all.store) {
    const std::string own_address = members()[static_cast<size_t>(place.rank)].address;
    const auto gloo_options = c10d::ProcessGroupGloo::Options::create(connecting);
    try {
      gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address));
      gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(all.store, place.rank, place.size, gloo_options);
    } catch (const std::exception& error) {
      throw LostRankError(
          fmt::format("rank {} ({}, address {}) cannot be connected with all other ranks: {}. Has one of them ended? Is a "
                      "firewall between?",
                      place.rank, host_name(), own_address, plain_message(error)));
    }
  }

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  std::unique_ptr<Transfer> exchange(const Messages& sent, const Messages& received, int tag) override {
    if (tag < 0 || tag >= kTagsEnd) throw std::logic_error("a tag is out of range");
    auto transfer = std::make_unique<GlooTransfer>(*this, *gloo_, operation_);
    for (const Message& message : received) transfer->receive(message, tag);
    for (const Message& message : sent) transfer->send(message, tag);
    return transfer;
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    if (!is_first()) {
      send_bytes(bytes, {0});
      return {};
    }
    std::vector<int> others;
    others.reserve(static_cast<size_t>(size()));
    for (int rank = 1; rank < size(); ++rank) others.push_back(rank);
    std::vector<std::string> all = receive_bytes(others);
    all.insert(all.begin(), bytes);
    return all;
  }

  /// Along a tree: rank r has it from r without its highest bit, and passes it on to r with a higher one.
  std::string broadcast(const std::string& bytes) override {
    int bit = 1;
    while (bit <= rank()) bit *= 2;
    std::string received = is_first() ? bytes : receive_bytes({rank() - bit / 2}).front();
    std::vector<int> children;
    for (; rank() + bit < size(); bit *= 2) children.push_back(rank() + bit);
    send_bytes(received, children);
    return received;
  }

  std::vector<std::string> gather_to_all(const std::string& bytes) override { return unpacked(broadcast(packed(gather(bytes)))); }

 private:
  /// Returns the bytes as a tensor that shares them.
  static at::Tensor shared(const char* bytes, size_t count) {
    return at::from_blob(const_cast<char*>(bytes), {static_cast<int64_t>(count)}, at::kByte);
  }

  void send_bytes(const std::string& bytes, const std::vector<int>& receivers) {
    const at::Tensor frame = at::zeros({kFrameBytes}, at::kByte);
    const uint64_t length = bytes.size();
    auto* const data = reinterpret_cast<char*>(frame.data_ptr<uint8_t>());
    std::memcpy(data, &length, sizeof length);
    bytes.copy(data + sizeof length, kBytesInFrame);
    GlooTransfer transfer(*this, *gloo_, operation_);
    for (const int rank : receivers) transfer.send({frame, rank}, kFrameTag);
    if (bytes.size() > kBytesInFrame)
      for (const int rank : receivers) transfer.send({shared(bytes.data() + kBytesInFrame, bytes.size() - kBytesInFrame), rank}, kRestTag);
    transfer.wait();
  }

  std::vector<std::string> receive_bytes(const std::vector<int>& senders) {
    std::vector<at::Tensor> frames;
    GlooTransfer received(*this, *gloo_, operation_), rests(*this, *gloo_, operation_);
    frames.reserve(senders.size());
    for (const int rank : senders) {
      frames.push_back(at::empty({kFrameBytes}, at::kByte));
      received.receive({frames.back(), rank}, kFrameTag);
    }
    received.wait();
    std::vector<std::string> all(senders.size());
    for (size_t i = 0; i < senders.size(); ++i) {
      uint64_t length = 0;
      const auto* const data = frames[i].const_data_ptr<uint8_t>();
      std::memcpy(&length, data, sizeof length);
      all[i].resize(length);
      const size_t in_frame = std::min<size_t>(length, kBytesInFrame);
      std::memcpy(all[i].data(), data + sizeof length, in_frame);
      if (length > in_frame) rests.receive({shared(all[i].data() + in_frame, length - in_frame), senders[i]}, kRestTag);
    }
    rests.wait();
    return all;
  }

  milliseconds operation_;  // Gloo's own limit is that of connecting
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

using GroupPtr = std::unique_ptr<Group>;

/// Waits for what another thread makes, and watches over the lobby meanwhile; false if it takes longer. Throws LostRankError as the lobby
/// does.
bool comes_within(milliseconds limit, const std::future<GroupPtr>& result, Lobby& lobby) {
  constexpr milliseconds kGlance{20};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (result.wait_for(kGlance) != std::future_status::ready) {
    lobby.look();
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

/// Returns what `work` returns, in a thread of its own. Throws LostRankError, and leaves the thread behind, if a rank in the lobby ends, or
/// it takes longer: LibTorch waits without end for a store whose machine was stopped.
GroupPtr within(milliseconds limit, const RankPlace& place, Lobby& lobby, const std::function<GroupPtr()>& work) {
  auto task = std::make_shared<std::packaged_task<GroupPtr()>>(work);
  std::future<GroupPtr> result = task->get_future();
  std::thread thread([task] { (*task)(); });
  bool has_ended = false;
  try {
    has_ended = comes_within(limit, result, lobby);
  } catch (const LostRankError&) {
    thread.detach();
    throw;
  }
  has_ended ? thread.join() : thread.detach();
  if (has_ended) return result.get();
  throw LostRankError(fmt::format("what listens at {}, port {}, does not answer for {} s. Is rank 0 stopped, or is it another program?",
                                  place.address, place.port, std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
}

}  // namespace

c10::intrusive_ptr<c10d::Store> store_of(const Group& group) {
  const auto* const joined = dynamic_cast<const GlooGroup*>(&group);
  if (joined == nullptr) throw std::logic_error("these ranks have met without a store");
  return joined->store();
}

std::unique_ptr<Group> join(const RankPlace& place, const JoinOptions& options) {
  if (place.is_alone()) return std::make_unique<AloneGroup>();
  silence_libtorch();
  allow_connections(place.size);
  const milliseconds connecting = std::min<milliseconds>(options.joining, std::chrono::minutes(1));
  const auto lobby = std::make_shared<Lobby>(place.rank, place.size);  // the thread that is left behind has it, too
  try {
    GroupPtr group = within(options.joining + connecting + std::chrono::seconds(1), place, *lobby, [=] {
      return std::make_unique<GlooGroup>(place, meet(place, options.joining, *lobby), connecting, options.operation);
    });
    lobby->join(connecting);
    return group;
  } catch (const UsageError&) {  // the store tells it to all
    lobby->leave();
    throw;
  } catch (const Error& error) {
    lobby->leave(error.what());
    throw;
  }
}

}  // namespace lacuna

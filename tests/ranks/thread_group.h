#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "ranks/group.h"

namespace lacuna {

/// What the threads of run_on_ranks share.
struct RanksOfThreads {
  /// One end of a message that waits for the other.
  struct End {
    at::Tensor values;
    std::shared_ptr<bool> is_done;
  };
  struct Round {
    std::vector<std::string> bytes;
    int given = 0, read = 0;
  };

  explicit RanksOfThreads(int number) : size(number) {}

  void lose() {
    const std::lock_guard lock(mutex);
    is_lost = true;
    changed.notify_all();
  }
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    changed.wait(lock, [&] { return is_lost || condition(); });
    if (!condition()) throw LostRankError("another thread has ended");
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_lost = false;
  std::map<std::tuple<int, int, int>, std::deque<End>> sent, awaited;  ///< by sender, receiver and tag
  std::map<int64_t, Round> rounds;
};

/// A rank that is a thread. A message is copied once both ends are there, and not before: a tensor that is changed too early shows.
class ThreadGroup : public Group {
 public:
  ThreadGroup(int rank, RanksOfThreads& shared) : Group(rank, shared.size), shared_(shared) {}

  std::vector<std::string> gather_to_all(const std::string& bytes) override {
    std::unique_lock lock(shared_.mutex);
    const int64_t number = round_++;
    RanksOfThreads::Round& round = shared_.rounds[number];
    round.bytes.resize(static_cast<size_t>(size()));
    round.bytes[static_cast<size_t>(rank())] = bytes;
    if (++round.given == size()) shared_.changed.notify_all();
    shared_.wait(lock, [&] { return round.given == size(); });
    std::vector<std::string> all = round.bytes;
    if (++round.read == size()) shared_.rounds.erase(number);
    return all;
  }
  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<std::string> all = gather_to_all(bytes);
    return is_first() ? all : std::vector<std::string>();
  }
  std::string broadcast(const std::string& bytes) override { return gather_to_all(bytes).front(); }

  std::unique_ptr<Transfer> exchange(const Messages& sent, const Messages& received, int tag) override {
    auto transfer = std::make_unique<ThreadTransfer>(shared_);
    for (const auto& [values, from] : received) transfer->add(start({from, rank(), tag}, values, shared_.awaited, shared_.sent, false));
    for (const auto& [values, to] : sent) transfer->add(start({rank(), to, tag}, values, shared_.sent, shared_.awaited, true));
    return transfer;
  }

 private:
  class ThreadTransfer : public Transfer {
   public:
    explicit ThreadTransfer(RanksOfThreads& shared) : shared_(shared) {}
    void add(std::shared_ptr<bool> is_done) { are_done_.push_back(std::move(is_done)); }
    void wait() override {
      std::unique_lock lock(shared_.mutex);
      for (const std::shared_ptr<bool>& is_done : are_done_) shared_.wait(lock, [&] { return *is_done; });
    }

   private:
    RanksOfThreads& shared_;
    std::vector<std::shared_ptr<bool>> are_done_;
  };
  using Ends = std::map<std::tuple<int, int, int>, std::deque<RanksOfThreads::End>>;

  std::shared_ptr<bool> start(const std::tuple<int, int, int>& key, const at::Tensor& values, Ends& own, Ends& others, bool sends) {
    if (!values.is_contiguous()) throw std::logic_error("a message must be contiguous");
    const std::lock_guard lock(shared_.mutex);
    auto is_done = std::make_shared<bool>(false);
    std::deque<RanksOfThreads::End>& waiting = others[key];
    if (waiting.empty()) {
      own[key].push_back({values, is_done});
    } else {
      const RanksOfThreads::End other = waiting.front();
      waiting.pop_front();
      if (other.values.nbytes() != values.nbytes()) throw std::logic_error("two ranks differ on a message's size");
      if (sends)
        std::memcpy(other.values.data_ptr(), values.data_ptr(), values.nbytes());
      else
        std::memcpy(values.data_ptr(), other.values.data_ptr(), values.nbytes());
      *is_done = *other.is_done = true;
      shared_.changed.notify_all();
    }
    return is_done;
  }

  RanksOfThreads& shared_;
  int64_t round_ = 0;
};

/// Calls `work` on `number` ranks at once, each a thread; with one rank on none but this thread. Returns what each has thrown.
inline std::vector<std::exception_ptr> run_on_ranks(int number, const std::function<void(Group&)>& work) {
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(number));
  RanksOfThreads shared(number);
  const auto run = [&](Group& group) {
    at::set_num_threads(1);
    try {
      work(group);
    } catch (...) {
      thrown[static_cast<size_t>(group.rank())] = std::current_exception();
      shared.lose();
    }
  };
  if (number == 1) {
    run(no_group());
    return thrown;
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < number; ++rank)
    threads.emplace_back([&, rank] {
      ThreadGroup group(rank, shared);
      run(group);
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace lacuna

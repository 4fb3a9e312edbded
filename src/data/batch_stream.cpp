#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/stopwatch.h"
#include "data/batch_maker.h"

namespace lacuna {
namespace {

constexpr size_t kBatchesAhead = 8;

class BackgroundStream : public BatchStream {
 public:
  BackgroundStream(BatchPlan plan, DataPosition start, BatchShare share)
      : plan_(std::move(plan)),
        share_(share),
        most_ready_(kBatchesAhead * static_cast<size_t>(share.size)),
        position_(start),
        maker_([this, start](const std::stop_token& stop) { make(stop, start); }) {}

  ~BackgroundStream() override {
    {
      const std::lock_guard lock(mutex_);  // otherwise the request could come between the thread's check and its wait
      maker_.request_stop();
    }
    changed_.notify_all();
  }

  std::shared_ptr<const Batch> next() override {
    std::unique_lock lock(mutex_);
    const Stopwatch waiting;
    changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
    waited_ += waiting.seconds();
    if (ready_.empty()) std::rethrow_exception(failure_);
    const Made made = std::move(ready_.front());
    ready_.pop_front();
    position_ = made.after;
    at_epoch_end_ = made.after.batch == 0;
    changed_.notify_all();
    return made.batch;
  }

  DataPosition position() const override { return position_; }
  bool at_epoch_end() const override { return at_epoch_end_; }
  double seconds_waited() const override { return waited_; }

 private:
  struct Made {
    std::shared_ptr<const Batch> batch;
    DataPosition after;
  };

  void make(const std::stop_token& stop, DataPosition position) {
    int64_t number = 0;  // of the batch in its update
    try {
      while (!stop.stop_requested()) {
        Epoch epoch(plan_, position.epoch);
        epoch.skip(position.batch);
        while (!epoch.is_over() && !stop.stop_requested()) {
          Made made{nullptr, {position.epoch, position.batch + 1}};
          if (number % share_.size == share_.rank)
            made.batch = epoch.next();
          else
            epoch.skip(1);
          number = (number + 1) % share_.per_update;
          if (epoch.is_over()) made.after = {position.epoch + 1, 0};
          position = made.after;
          if (!hand_over(std::move(made), stop)) return;
        }
        if (position.batch != 0) position = {position.epoch + 1, 0};  // the start was at or beyond the epoch's end
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  bool hand_over(Made made, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.size() < most_ready_ || stop.stop_requested(); });
    if (stop.stop_requested()) return false;
    ready_.push_back(std::move(made));
    changed_.notify_all();
    return true;
  }

  const BatchPlan plan_;
  const BatchShare share_;
  const size_t most_ready_;  ///< with others' batches, which hold nothing
  DataPosition position_;
  bool at_epoch_end_ = false;
  double waited_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Made> ready_;
  std::exception_ptr failure_;
  std::jthread maker_;  // last: it uses everything above
};

}  // namespace

std::unique_ptr<BatchStream> make_batch_stream(BatchPlan plan, DataPosition start, BatchShare share) {
  return std::make_unique<BackgroundStream>(std::move(plan), start, share);
}

}  // namespace lacuna

#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
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
        maker_([this, start](const std::stop_token& stop) { make_all(stop, start); }) {}

  ~BackgroundStream() override {
    {
      const std::lock_guard lock(mutex_);  // otherwise the request could come between the thread's check and its wait
      maker_.request_stop();
    }
    if (plan_.stream) plan_.stream->stop();
    changed_.notify_all();
  }

  std::shared_ptr<const Batch> next() override {
    std::unique_lock lock(mutex_);
    const Stopwatch waiting;
    changed_.wait(lock, [&] { return !ready_.empty() || failure_ || has_ended_; });
    waited_ += waiting.seconds();
    if (ready_.empty() && failure_) std::rethrow_exception(failure_);
    if (ready_.empty()) {
      is_interrupted_ = plan_.stream->is_interrupted();
      is_over_ = !is_interrupted_;
      return nullptr;
    }
    const Made made = std::move(ready_.front());
    ready_.pop_front();
    position_ = made.after;
    is_over_ = made.is_last;
    at_epoch_end_ = made.after.batch == 0;
    changed_.notify_all();
    return made.batch;
  }

  DataPosition position() const override { return position_; }
  bool at_epoch_end() const override { return at_epoch_end_; }
  bool is_over() const override { return is_over_; }
  bool is_interrupted() const override { return is_interrupted_; }
  double seconds_waited() const override { return waited_; }

 private:
  struct Made {
    std::shared_ptr<const Batch> batch;
    DataPosition after;
    bool is_last = false;
  };

  void make_all(const std::stop_token& stop, DataPosition start) {
    try {
      plan_.stream ? make_of_stream(stop, start) : make_of_corpora(stop, start);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  void make_of_corpora(const std::stop_token& stop, DataPosition position) {
    int64_t number = 0;  // of the batch in its update
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
  }

  using Block = std::shared_ptr<const TokenizedCorpus>;

  void make_of_stream(const std::stop_token& stop, DataPosition position) {
    StreamedCorpus& text = *plan_.stream;
    if (text.skips_consumed()) {
      text.skip(position.epoch);
    } else {
      position = {position.epoch + (position.batch > 0 ? 1 : 0), 0};
    }
    Block block = text.next();
    if (!block && !text.is_interrupted() && position == DataPosition())
      throw DataError(text.name() + ": there is no line; expected sentence pairs");
    for (; block && !stop.stop_requested(); position = {position.epoch + 1, 0}) {
      std::future<Block> following = std::async(std::launch::async, [&text] { return text.next(); });  // while this one's batches are made
      if (!make_of_block(block, position, following, stop)) return;
      block = following.valid() ? following.get() : std::exchange(following_, {});
    }
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

  /// Makes the batches of a block, from a position in it on. The last of them is known to be the last of all once the following block has
  /// been waited for. Returns false if nobody wants them any more.
  bool make_of_block(const Block& block, DataPosition position, std::future<Block>& following, const std::stop_token& stop) {
    if (block->size() == 0) return true;
    BatchPlan plan = plan_;
    plan.corpora = {block};
    plan.weights = {1};
    Epoch epoch(plan, position.epoch);
    epoch.skip(position.batch);
    while (!epoch.is_over()) {
      Made made{epoch.next(), {position.epoch, ++position.batch}};
      if (epoch.is_over()) {
        following_ = following.get();
        made.after = {position.epoch + 1, 0};
        made.is_last = !following_ && !plan.stream->is_interrupted();
      }
      if (!hand_over(std::move(made), stop)) return false;
    }
    return true;
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
  bool at_epoch_end_ = false, is_over_ = false, is_interrupted_ = false;
  double waited_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Made> ready_;
  bool has_ended_ = false;  ///< of a stream: no other batch will be ready
  std::exception_ptr failure_;
  Block following_;     // of a stream: the block that was waited for
  std::jthread maker_;  // last: it uses everything above
};

}  // namespace

std::unique_ptr<BatchStream> make_batch_stream(BatchPlan plan, DataPosition start, BatchShare share) {
  return std::make_unique<BackgroundStream>(std::move(plan), start, share);
}

}  // namespace lacuna

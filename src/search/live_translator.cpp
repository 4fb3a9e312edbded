#include "search/live_translator.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "base/log.h"

namespace lacuna {
namespace {

bool is_abandoned(const LiveLine& line) {
  return line.is_abandoned && *line.is_abandoned;
}

int64_t bytes_of(const LiveLine& line) {
  return std::ssize(line.input.text) + std::ssize(line.input.prefix) + 1;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr char kAbandoned[] = "abandoned";

}  // namespace

/// The queue of one search: tokenizes the lines that it takes, and answers those that are finished.
class LiveTranslator::Batch : public SearchQueue {
 public:
  Batch(LiveTranslator& live, int64_t workers)
      : live_(live), workers_(workers), batch_tokens_(live.translator_.batch_tokens(live.num_workers_)) {}

  std::vector<size_t> take(int64_t tokens) override {
    std::vector<size_t> places;
    if (tokens > batch_tokens_ / 2) return places;
    while (next_ || prepare_next(tokens == 0)) {
      const int64_t length = next_->input.batch_tokens();
      if (tokens > 0 && tokens + length > batch_tokens_) break;
      const size_t place = num_taken_++;
      sentences_.emplace(place, std::move(*next_));
      next_.reset();
      if (length == 0) {
        finish(place, {});
      } else {
        places.push_back(place);
        tokens += length;
      }
    }
    if (workers_ == 1) choose_team(places);
    return places;
  }

  const SearchInput& input(size_t place) const override { return sentences_.at(place).input; }
  bool is_wanted(size_t place) const override { return !is_abandoned(sentences_.at(place).line); }

  void finish(size_t place, std::vector<Hypothesis> translations) override {
    Sentence& sentence = sentences_.at(place);
    if (is_abandoned(sentence.line)) {
      answer(sentence, kAbandoned, &Load::abandoned_lines);
    } else {
      live_.translator_.complete(sentence.line.input, sentence.input, translations, sentence.result);
      const int64_t tokens = std::ssize(sentence.result.translations.front().tokens) + 1;
      live_.count(&Load::tokens, tokens);
      if (alone_ && alone_->place == place) live_.team_choice_.add(live_.team_threads_, tokens, seconds_since(alone_->begin));
      answer(sentence, "", &Load::translated_lines);
    }
    if (alone_ && alone_->place == place) alone_.reset();
    sentences_.erase(place);
  }

  /// Answers all sentences of the batch with an error.
  void fail(const std::string& error) {
    for (auto& [place, sentence] : sentences_) answer(sentence, error, &Load::failed_lines);
    sentences_.clear();
    if (next_) answer(*next_, error, &Load::failed_lines);
    next_.reset();
  }

 private:
  struct Sentence {
    LiveLine line;
    SearchInput input;
    TranslatedLine result;
  };

  /// A sentence that was taken into an empty batch, and is alone there.
  struct Alone {
    size_t place;
    Clock::time_point begin;
  };

  /// Chooses the threads of the next step, before which sentences of these places were taken.
  void choose_team(const std::vector<size_t>& taken) {
    if (taken.empty()) return;
    const bool is_alone = sentences_.size() == 1 && live_.num_workers_ > 1;
    live_.use_threads(is_alone ? live_.team_choice_.next() : live_.num_threads_);
    alone_ = is_alone ? std::optional(Alone{taken.front(), Clock::now()}) : std::nullopt;
  }

  /// Tokenizes the next line of the queue, which it waits for where others may still come. Returns false if there is none.
  bool prepare_next(bool may_wait) {
    std::optional<LiveLine> line = live_.next_line(is_running_, may_wait, workers_, std::ssize(sentences_));
    if (!line) return false;
    next_ = {std::move(*line), {}, {}};
    if (is_abandoned(next_->line)) return true;
    next_->input = live_.translator_.prepared(next_->line.input, next_->result);
    next_->input.n_best = next_->line.n_best;
    next_->input.is_aligned = next_->line.is_aligned;
    return true;
  }

  void answer(Sentence& sentence, const std::string& error, int64_t Load::*outcome) {
    live_.count(outcome, 1);
    sentence.line.on_done(std::move(sentence.result), error);
    live_.count(&Load::searched_lines, -1);
  }

  LiveTranslator& live_;
  const int64_t workers_, batch_tokens_;
  bool is_running_ = false;  // counted in live_.running_
  size_t num_taken_ = 0;
  std::optional<Alone> alone_;
  std::optional<Sentence> next_;  // for which there was no room yet
  std::unordered_map<size_t, Sentence> sentences_;
};

LiveTranslator::LiveTranslator(Translator translator, int64_t most_waiting_bytes)
    : translator_(std::move(translator)),
      most_waiting_bytes_(most_waiting_bytes),
      num_threads_(at::get_num_threads()),
      num_workers_(translator_.num_workers()),
      team_choice_(num_threads_),
      team_threads_(num_threads_),
      thread_([this] { run(); }) {}

LiveTranslator::~LiveTranslator() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LiveTranslator::add(std::vector<LiveLine> lines) {
  int64_t bytes = 0;
  for (const LiveLine& line : lines) bytes += bytes_of(line);
  {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ > 0 && waiting_bytes_ + bytes > most_waiting_bytes_) return false;
    waiting_bytes_ += bytes;
    counts_.waiting_lines += std::ssize(lines);
    for (LiveLine& line : lines) {
      std::deque<LiveLine>& of_client = lines_of_[line.client];
      if (of_client.empty()) turns_.push_back(line.client);
      of_client.push_back(std::move(line));
    }
  }
  changed_.notify_all();
  return true;
}

void LiveTranslator::drop_abandoned() {
  std::vector<LiveLine> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [client, lines] : lines_of_) {
      const auto first = std::stable_partition(lines.begin(), lines.end(), [](const LiveLine& line) { return !is_abandoned(line); });
      std::move(first, lines.end(), std::back_inserter(dropped));
      lines.erase(first, lines.end());
    }
    std::erase_if(lines_of_, [](const auto& client) { return client.second.empty(); });
    std::erase_if(turns_, [this](const std::string& client) { return !lines_of_.contains(client); });
    for (const LiveLine& line : dropped) waiting_bytes_ -= bytes_of(line);
    counts_.waiting_lines -= std::ssize(dropped);
    counts_.abandoned_lines += std::ssize(dropped);
  }
  for (const LiveLine& line : dropped) line.on_done({}, kAbandoned);
}

LiveTranslator::Load LiveTranslator::load() const {
  const std::lock_guard lock(mutex_);
  Load load = counts_;
  load.waiting_bytes = waiting_bytes_;
  return load;
}

void LiveTranslator::count(int64_t Load::*what, int64_t number) {
  const std::lock_guard lock(mutex_);
  counts_.*what += number;
}

/// Searches until the object is destroyed and nothing waits.
void LiveTranslator::run() {
  at::set_num_threads(static_cast<int>(num_threads_));  // a new thread has another number
  const at::NoGradGuard no_gradients;
  for (int64_t workers = 1; begin_round(workers);) {
    if (workers == 1) {
      search_on_this_thread(workers);
    } else {
      use_threads(num_threads_);
      at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
        const at::NoGradGuard none_here_either;
        search_on_this_thread(workers);
      });
    }
  }
}

/// Sets how many threads work for the searching one, itself counted. (LibTorch's function for it makes another pool of threads anew.)
void LiveTranslator::use_threads(int64_t threads) {
  if (std::exchange(team_threads_, threads) != threads) omp_set_num_threads(static_cast<int>(threads));
}

/// Waits for lines, and says how many batches there should be until all of them are done. Returns false at the end.
bool LiveTranslator::begin_round(int64_t& workers) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !turns_.empty() || is_ending_; });
  workers = is_enough_for_all() ? num_workers_ : 1;
  return !turns_.empty();
}

/// Searches until there is nothing to do for any of the round's `workers`. An error is one of the lines in the batch.
void LiveTranslator::search_on_this_thread(int64_t workers) {
  Batch batch(*this, workers);
  for (bool is_done = false; !is_done;) {
    try {
      translator_.search_for(batch);
      is_done = true;
    } catch (const std::exception& error) {
      log_warning("a batch of translations has failed: {}", error.what());
      batch.fail(error.what());
    }
  }
}

/// Returns the next line for a search. None if nothing waits; where `may_wait`, because the search has no lines, only once no other search
/// of the round has any either. A search for which all threads work takes no more once there is enough for a batch of each; one of several
/// takes its share of all lines, of which it has `num_own`: in a larger batch than the others' each token would take longer.
std::optional<LiveLine> LiveTranslator::next_line(bool& is_running, bool may_wait, int64_t workers, int64_t num_own) {
  std::unique_lock lock(mutex_);
  if (may_wait && std::exchange(is_running, false) && --running_ == 0) changed_.notify_all();
  if (workers == 1 && is_enough_for_all()) return {};
  const bool has_share = num_own * workers >= counts_.waiting_lines + counts_.searched_lines;
  if (workers > 1 && has_share && !may_wait) return {};
  std::optional<LiveLine> line = popped();
  while (!line && may_wait && running_ > 0) {
    changed_.wait(lock);
    line = popped();
  }
  if (line && !std::exchange(is_running, true)) ++running_;
  return line;
}

/// Returns true if each thread should have a batch of its own.
bool LiveTranslator::is_enough_for_all() const {
  if (num_workers_ == 1) return false;
  const int64_t enough = num_workers_ <= kFewThreads ? num_workers_ : kLinesOfThread * num_workers_;
  return waiting_bytes_ > kBytesForOneBatch || counts_.waiting_lines + counts_.searched_lines >= enough;
}

/// Takes the line whose turn it is out of the queue, if there is one.
std::optional<LiveLine> LiveTranslator::popped() {
  if (turns_.empty()) return {};
  const std::string client = std::move(turns_.front());
  turns_.pop_front();
  const auto found = lines_of_.find(client);
  std::deque<LiveLine>& lines = found->second;
  std::optional<LiveLine> line = std::move(lines.front());
  lines.pop_front();
  if (lines.empty()) {
    lines_of_.erase(found);
  } else {
    turns_.push_back(client);
  }
  waiting_bytes_ -= bytes_of(*line);
  --counts_.waiting_lines;
  ++counts_.searched_lines;
  return line;
}

}  // namespace lacuna

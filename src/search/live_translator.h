#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "search/team_choice.h"
#include "search/translator.h"

namespace lacuna {

/// A line that somebody waits for.
struct LiveLine {
  TranslationInput input;
  int64_t n_best = 1;                                          ///< translations wanted, at most the size of the beam
  bool is_aligned = false;                                     ///< its links are wanted
  std::string client = {};                                     ///< whose line it is: clients take turns
  std::shared_ptr<const std::atomic<bool>> is_abandoned = {};  ///< becomes true when nobody waits any more
  /// Called once, by a searching thread: with the translations, or with why there are none.
  std::function<void(TranslatedLine translated, const std::string& error)> on_done = {};
};

/// Translates lines of many clients as they come. They enter and leave the batches of running searches, which does not change a
/// translation; clients take turns line by line. While there are few lines, all threads work for one batch, or one for a line that is alone
/// where that is faster (team_choice.h); with many, each thread has its own. Lines that are abandoned leave the queue and the batches
/// without being finished.
class LiveTranslator {
 public:
  /// How much there is to do, and how much was done.
  struct Load {
    int64_t waiting_lines = 0, waiting_bytes = 0;  ///< in the queue
    int64_t searched_lines = 0;                    ///< in batches
    int64_t translated_lines = 0, abandoned_lines = 0, failed_lines = 0, tokens = 0;
  };

  /// Beam search only. The texts of lines that wait take at most `most_waiting_bytes`, or are those of one request.
  LiveTranslator(Translator translator, int64_t most_waiting_bytes);
  /// Waits until all lines that were added are done.
  ~LiveTranslator();
  LiveTranslator(const LiveTranslator&) = delete;
  LiveTranslator& operator=(const LiveTranslator&) = delete;

  /// Adds the lines of a request; returns false, having added none, if there is no room for them.
  bool add(std::vector<LiveLine> lines);
  /// Takes abandoned lines out of the queue. Batches notice by themselves.
  void drop_abandoned();
  Load load() const;
  const Translator& translator() const { return translator_; }

 private:
  class Batch;

  void run();
  bool begin_round(int64_t& workers);
  void search_on_this_thread(int64_t workers);
  std::optional<LiveLine> next_line(bool& is_running, bool may_wait, int64_t workers, int64_t num_own);
  std::optional<LiveLine> popped();
  bool is_enough_for_all() const;
  void count(int64_t Load::*what, int64_t number);
  void use_threads(int64_t threads);

  /// What all threads translate together: with more bytes waiting, some 1,000 tokens, or more lines here for each thread, each thread has
  /// its own batch. Batches of their own do not wait for each other, as they would for a thread that the system has stopped, but each reads
  /// all weights: few threads need a line each.
  static constexpr int64_t kBytesForOneBatch = 4096, kLinesOfThread = 4, kFewThreads = 2;

  const Translator translator_;
  const int64_t most_waiting_bytes_, num_threads_, num_workers_;
  TeamChoice team_choice_;    // of `thread_` alone, as is the next
  int64_t team_threads_;      // that work for it
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::string, std::deque<LiveLine>> lines_of_;  // of each client that has some
  std::deque<std::string> turns_;                         // these clients, the next one first
  int64_t waiting_bytes_ = 0;
  int64_t running_ = 0;  // searches that have lines
  Load counts_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace lacuna

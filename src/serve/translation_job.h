#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/catalog.h"
#include "serve/cross_attention.h"
#include "serve/exchange.h"
#include "serve/sentence_cache.h"

namespace lacuna::serve {

/// What a request wants translated, and how.
struct Wanted {
  std::vector<TranslationInput> lines;
  int64_t n_best = 1;
  bool is_aligned = false;
  bool has_tokens = false;     ///< the tokens of translations are wanted
  bool has_attention = false;  ///< their attention is wanted, which the cache does not keep
  std::string client;          ///< whose turn it takes
};

/// The lines of one request on their way through the cache and the search.
class TranslationJob : public std::enable_shared_from_this<TranslationJob> {
 public:
  /// `attention` is empty unless it is wanted.
  using OnLine = std::function<void(size_t index, const TranslatedLine& line, const Attentions& attention)>;
  using OnEnd = std::function<void(const std::string& error)>;

  /// Calls `on_line` for each line in order, as they are done, then `on_end` without an error; or `on_end` with one, once, and nothing
  /// more. They are called by any thread, one at a time. Throws RequestError 503, having called nothing, if there is no room.
  static void start(ServedModelPtr model, SentenceCache& cache, Exchange& exchange, const Wanted& wanted, OnLine on_line, OnEnd on_end);

 private:
  TranslationJob(ServedModelPtr model, SentenceCache& cache, const Wanted& wanted, OnLine on_line, OnEnd on_end);
  std::string cache_key(const Wanted& wanted, const TranslationInput& line) const;
  struct Done {
    TranslatedLine line;
    Attentions attention = {};
  };
  std::string look_at(const TranslationInput& line, Done& done) const;
  void finish(size_t index, Done done, const std::string& error);

  const ServedModelPtr model_;
  SentenceCache& cache_;
  const OnLine on_line_;
  const OnEnd on_end_;
  std::mutex mutex_;                       // guards all below
  std::vector<std::optional<Done>> done_;  // those that wait for one before them
  size_t next_ = 0;
  bool has_ended_ = false;
};

}  // namespace lacuna::serve

#include "serve/translation_job.h"

#include <utility>

#include "config/read_options.h"

namespace lacuna::serve {
namespace {

void drop_tokens(TranslatedLine& line) {
  for (Translation& one : line.translations) {
    one.tokens = {};
    one.token_log_probs = {};
  }
}

}  // namespace

void TranslationJob::start(ServedModelPtr model, SentenceCache& cache, Exchange& exchange, const Wanted& wanted, OnLine on_line,
                           OnEnd on_end) {
  const std::shared_ptr<TranslationJob> job(new TranslationJob(std::move(model), cache, wanted, std::move(on_line), std::move(on_end)));
  const ServedModel& by = *job->model_;
  std::vector<LiveLine> lines;
  std::vector<std::pair<size_t, TranslatedLine>> known;
  for (size_t i = 0; i < wanted.lines.size(); ++i) {
    const TranslationInput& line = wanted.lines[i];
    const std::string key = job->cache_key(wanted, line);
    if (auto found = cache.find(key)) {
      known.emplace_back(i, std::move(*found));
      continue;
    }
    const auto on_done = [job, i, key, has_tokens = wanted.has_tokens](TranslatedLine translated, const std::string& error) {
      if (!has_tokens) drop_tokens(translated);
      if (error.empty()) job->cache_.put(key, translated);
      job->finish(i, std::move(translated), error);
    };
    const bool is_aligned = wanted.is_aligned || by.options.guard != Guard::kNone;
    const int64_t n_best = line.options ? line.options->n_best : wanted.n_best;
    lines.push_back({line, n_best, is_aligned, wanted.client, exchange.is_abandoned, on_done});
  }
  constexpr int kPatience = 2;
  if (!lines.empty() && !by.translator->add(std::move(lines)))
    throw RequestError(503, "too much text waits to be translated; ask again later", kPatience);
  for (auto& [index, line] : known) job->finish(index, std::move(line), "");
  if (wanted.lines.empty()) job->on_end_("");
}

TranslationJob::TranslationJob(ServedModelPtr model, SentenceCache& cache, const Wanted& wanted, OnLine on_line, OnEnd on_end)
    : model_(std::move(model)), cache_(cache), on_line_(std::move(on_line)), on_end_(std::move(on_end)), done_(wanted.lines.size()) {}

/// Returns what the cache knows a line by: all that its translation depends on.
std::string TranslationJob::cache_key(const Wanted& wanted, const TranslationInput& line) const {
  std::string key = std::to_string(model_->number) + " " + std::to_string(wanted.n_best);
  key += (wanted.is_aligned ? " a" : "") + std::string(wanted.has_tokens ? " t " : " ");
  if (line.options) key += write_options(*line.options).to_line();
  key += line.prefix;
  key += '\0';
  return key + line.text;
}

void TranslationJob::finish(size_t index, TranslatedLine line, const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  if (!error.empty()) {
    has_ended_ = true;
    return on_end_(error);
  }
  done_[index] = std::move(line);
  for (; next_ < done_.size() && done_[next_]; ++next_) {
    on_line_(next_, *done_[next_]);
    done_[next_].reset();
  }
  if (next_ < done_.size()) return;
  has_ended_ = true;
  on_end_("");
}

}  // namespace lacuna::serve

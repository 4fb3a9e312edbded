#include "serve/translation_job.h"

#include <utility>

#include "base/log.h"
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
    if (auto found = wanted.has_attention ? std::nullopt : cache.find(key)) {
      known.emplace_back(i, std::move(*found));
      continue;
    }
    const auto on_done = [job, i, key, line, has_tokens = wanted.has_tokens, has_attention = wanted.has_attention](
                             TranslatedLine translated, const std::string& error) {
      Done done{std::move(translated)};
      std::string failure = error;
      if (error.empty() && has_attention) failure = job->look_at(line, done);
      if (!has_tokens) drop_tokens(done.line);
      if (failure.empty() && !has_attention) job->cache_.put(key, done.line);
      job->finish(i, std::move(done), failure);
    };
    const bool is_aligned = wanted.is_aligned || by.options.guard != Guard::kNone;
    const int64_t n_best = line.options ? line.options->n_best : wanted.n_best;
    lines.push_back({line, n_best, is_aligned, wanted.client, exchange.is_abandoned, on_done});
  }
  constexpr int kPatience = 2;
  if (!lines.empty() && !by.translator->add(std::move(lines)))
    throw RequestError(503, "too much text waits to be translated; ask again later", kPatience);
  for (auto& [index, line] : known) job->finish(index, {std::move(line)}, "");
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

/// Adds the attention of a line's translations. Returns why there is none, or nothing.
std::string TranslationJob::look_at(const TranslationInput& line, Done& done) const {
  try {
    done.attention = attention_of(*model_, line, done.line);
  } catch (const std::exception& error) {
    log_warning("the attention of a translation could not be looked at: {}", error.what());
    return error.what();
  }
  return "";
}

void TranslationJob::finish(size_t index, Done done, const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  if (!error.empty()) {
    has_ended_ = true;
    return on_end_(error);
  }
  done_[index] = std::move(done);
  for (; next_ < done_.size() && done_[next_]; ++next_) {
    on_line_(next_, done_[next_]->line, done_[next_]->attention);
    done_[next_].reset();
  }
  if (next_ < done_.size()) return;
  has_ended_ = true;
  on_end_("");
}

}  // namespace lacuna::serve

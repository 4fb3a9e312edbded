#include "data/training_data.h"

#include <spdlog/fmt/fmt.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/log.h"
#include "config/run_files.h"
#include "data/evaluation_set.h"

namespace lacuna {
namespace {

constexpr double kManyUnknown = 0.01;

void warn_of_unknown(const CorpusOptions& corpus, const DataSummary& summary) {
  const auto warn = [](const std::string& side, double rate) {
    if (rate > kManyUnknown)
      log_warning("{}: {:.1f} % of the tokens are unknown to the vocabulary; is it the right one for this text?", side, 100 * rate);
  };
  warn(corpus.src_text(), summary.src_unk_rate());
  warn(corpus.tgt_text(), summary.tgt_unk_rate());
}

/// Warns if the configuration leaves out more than a tenth of the pairs.
void warn_of_skipped(const CorpusOptions& corpus, const DataSummary& summary) {
  const int64_t skipped = summary.skipped + summary.uneven;
  if (10 * skipped > summary.lines)
    log_warning("{}: {:.0f} % of its pairs do not train, as they are longer than data.max_length or beyond data.max_length_ratio",
                name_of(corpus), 100 * static_cast<double>(skipped) / static_cast<double>(summary.lines));
}

}  // namespace

TrainingData open_training_data(const DataOptions& options, const std::string& folder, int64_t batch_tokens, uint64_t seed,
                                const std::optional<Vocabularies>& given) {
  if (options.train.empty()) throw ConfigError(fmt::format("data.train is empty; expected training corpora: {}", CorpusOptions::kForm));
  TrainingData data;
  data.vocabularies = given ? *given : prepare_vocabularies(options, folder, seed);
  const std::string cache = options.cache.empty() ? folder + "/" + run_files::kCache : options.cache;
  ContentHash fingerprint;
  for (const CorpusOptions& corpus : options.train) {
    const auto opened = TokenizedCorpus::open(corpus, options, data.vocabularies, cache);
    log_info("{}: {}", name_of(corpus), opened->summary().text());
    warn_of_unknown(corpus, opened->summary());
    warn_of_skipped(corpus, opened->summary());
    data.plan.corpora.push_back(opened);
    data.plan.weights.push_back(corpus.weight);
    data.summary += opened->summary();
    fingerprint.add(opened->fingerprint());
  }
  data.fingerprint = fingerprint.text();
  data.plan.batch_tokens = batch_tokens;
  data.plan.seed = seed;
  data.plan.spm_alpha = options.spm_alpha;
  data.plan.spm_nbest = options.spm_nbest;
  data.plan.max_length = options.max_length;
  data.plan.vocabularies = data.vocabularies;
  return data;
}

}  // namespace lacuna

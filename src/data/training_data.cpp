#include "data/training_data.h"

#include <spdlog/fmt/fmt.h>

#include "base/content_hash.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"
#include "config/run_files.h"
#include "data/evaluation_set.h"

namespace lacuna {
namespace {

/// Warns if the configuration leaves out more than a tenth of the pairs.
void warn_of_skipped(const CorpusOptions& corpus, const DataSummary& summary) {
  const int64_t skipped = summary.skipped + summary.uneven;
  if (10 * skipped > summary.lines)
    log_warning("{}: {:.0f} % of its pairs do not train, as they are longer than data.max_length or beyond data.max_length_ratio",
                name_of(corpus), 100 * static_cast<double>(skipped) / static_cast<double>(summary.lines));
}

/// Says that a vocabulary which was not made for this configuration has another rule than its keys.
void log_normalization(const std::string& side, const Vocabulary& vocabulary, const std::string& rule) {
  if (vocabulary.normalization() != rule)
    log_info(
        "{} text is normalized by {}, as the vocabulary says: data.src_normalization and data.tgt_normalization are of one that is "
        "trained here",
        side, vocabulary.normalization());
}

/// Warns of the lines that are left out, of each kind.
void warn_of_bad_lines(const CorpusOptions& corpus, const BadLines& bad) {
  for (const auto& [name, kind] : bad.kinds)
    log_warning("{}: {} left out, {}; the first: {}", name_of(corpus), counted(kind.lines, "line"), name, kind.first);
}

}  // namespace

void refuse_stream(const DataOptions& options, const std::string& who) {
  if (const CorpusOptions* const stream = options.stream())
    throw ConfigError(fmt::format("data.train: {} is a stream, which is read once, and {} reads training text several times; name files",
                                  stream->tsv, who));
}

TrainingData open_training_data(const DataOptions& options, const std::string& folder, int64_t batch_tokens, uint64_t seed,
                                const std::optional<Vocabularies>& given) {
  if (options.train.empty()) throw ConfigError(fmt::format("data.train is empty; expected training corpora: {}", CorpusOptions::kForm));
  TrainingData data;
  data.vocabularies = given ? *given : prepare_vocabularies(options, folder, seed);
  if (options.tokenizer == Tokenizer::kSentencePiece) {
    log_normalization("source", *data.vocabularies.src, options.src_normalization);
    log_normalization("target", *data.vocabularies.tgt, options.tgt_normalization);
  }
  data.plan.batch_tokens = batch_tokens;
  data.plan.seed = seed;
  data.plan.spm_alpha = options.spm_alpha;
  data.plan.spm_nbest = options.spm_nbest;
  data.plan.max_length = options.max_length;
  data.plan.vocabularies = data.vocabularies;
  if (!options.cache.empty()) make_parent_of(options.cache);
  const std::string cache = options.cache.empty() ? folder + "/" + run_files::kCache : options.cache;
  if (const CorpusOptions* const stream = options.stream()) {
    data.plan.stream = std::make_shared<StreamedCorpus>(*stream, options, data.vocabularies, std::filesystem::path(cache) / "stream");
    data.fingerprint = data.plan.stream->fingerprint();
    return data;
  }
  ContentHash fingerprint;
  for (const CorpusOptions& corpus : options.train) {
    const auto opened = TokenizedCorpus::open(corpus, options, data.vocabularies, cache);
    log_info("{}: {}", name_of(corpus), opened->summary().text());
    const DataSummary& counts = opened->summary();
    warn_of_unknown(corpus.src_text(), counts.src_unk, counts.src_tokens);
    warn_of_unknown(corpus.tgt_text(), counts.tgt_unk, counts.tgt_tokens);
    warn_of_skipped(corpus, opened->summary());
    warn_of_bad_lines(corpus, opened->summary().bad);
    data.plan.corpora.push_back(opened);
    data.plan.weights.push_back(corpus.weight);
    data.summary += opened->summary();
    fingerprint.add(opened->fingerprint());
  }
  data.fingerprint = fingerprint.text();
  return data;
}

}  // namespace lacuna

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// The command that starts sacreBLEU: a program and its first arguments.
struct Scorer {
  std::vector<std::string> command;
};

/// Finds sacreBLEU: the configured command if there is one, else `sacrebleu` on PATH, else the package in the project's own virtual
/// environment (when `executable`, this program, lies in the project's build folder), else `python3 -m sacrebleu`. Throws ConfigError if
/// the configured one does not exist, MachineError that says how to get sacreBLEU if none is found.
Scorer find_sacrebleu(const std::string& configured = "", const std::filesystem::path& executable = "/proc/self/exe");

struct ScoreOptions {
  std::vector<std::string> metrics = {"bleu", "chrf", "ter"};  ///< any of these three
  std::string tgt_lang = {};                                   ///< code of the target language: de, zh-CN, zho_Hans; chooses the tokenizer
  std::string tokenizer = {};                                  ///< BLEU's tokenizer, by sacreBLEU's name for it; empty = by tgt_lang
  bool lowercase = false;                                      ///< BLEU and chrF do not see case (TER never does)
  int64_t chrf_word_order = 0;                                 ///< longest word n-grams of chrF; 2 = chrF++
  std::string joiner = {};                                     ///< with it, texts in pieces are joined first (text/joiner.h)
  int64_t confidence_samples = 0;                              ///< bootstrap samples for each score's interval; 0 = no interval
  OnBadLine bad_lines = OnBadLine::kStop;                      ///< kSkip: a line that is bad in one file is left out of all
};

/// BLEU's tokenizer under these options: the named one, else zh, ja-mecab or ko-mecab for these three languages, char for others that put
/// no spaces between words (Thai, Lao, Khmer, Burmese, Tibetan, Dzongkha), and 13a for all others.
std::string bleu_tokenizer(const ScoreOptions& options);

struct MetricScore {
  std::string name;                                ///< as sacreBLEU writes it: BLEU, chrF2, chrF2++, TER
  double score = 0;                                ///< 0 to 100 (TER may pass it), four decimals
  std::string signature;                           ///< what others need to get the same number
  std::string details;                             ///< BLEU: precisions, brevity penalty and lengths; else empty
  std::optional<double> mean = {}, interval = {};  ///< over the resamples, if asked for: 95 % of them lie within mean ± interval
};

struct CorpusScores {
  std::optional<MetricScore> bleu, chrf, ter;  ///< those that were asked for
  std::string tokenizer;                       ///< of BLEU
  int64_t num_lines = 0;
  int64_t bad_lines = 0;  ///< beside them, left out
  std::string notes;      ///< what sacreBLEU said on stderr, such as a warning of text that is not detokenized

  /// The scores that are there, under the names that ScoreOptions::metrics uses.
  std::vector<std::pair<std::string, MetricScore>> all() const;
};

/// Scores detokenized translations, one a line, against one or more references. Files may be gzip or zstd, and "-" is stdin.
/// Throws DataError for files that are missing, empty or of different line counts, LineError for a line that is bad and not to be left
/// out; UsageError for options that sacreBLEU refuses; MachineError with the last lines of its stderr if it fails, or with what to install
/// where its tokenizer needs packages.
CorpusScores score_files(const Scorer& scorer, const std::filesystem::path& hypotheses,
                         const std::vector<std::filesystem::path>& references, const ScoreOptions& options);

/// score_files() for lines in memory. No line may hold a line break.
CorpusScores score_lines(const Scorer& scorer, const std::vector<std::string>& hypotheses,
                         const std::vector<std::vector<std::string>>& references, const ScoreOptions& options);

/// Throws the error of scoring if BLEU's tokenizer for the language needs packages that sacreBLEU does not bring (Japanese, Korean): to be
/// called before hours of training.
void require_tokenizer(const Scorer& scorer, const std::string& tgt_lang);

struct PairedScore {
  double score = 0;
  double mean = 0, interval = 0;       ///< over the resamples: 95 % of them lie within mean ± interval
  std::optional<double> p_value = {};  ///< of the difference to the baseline; the baseline itself has none
};

struct PairedSystem {
  std::filesystem::path hypotheses;
  std::vector<std::pair<std::string, PairedScore>> scores;  ///< under the names that ScoreOptions::metrics uses
};

struct PairedComparison {
  std::vector<PairedSystem> systems;                            ///< the baseline first
  std::vector<std::pair<std::string, std::string>> signatures;  ///< of each metric, under the same names
  std::string report;                                           ///< sacreBLEU's own table, what it means, and the signatures
  int64_t num_lines = 0, bad_lines = 0;                         ///< as those of CorpusScores
};

/// Tests whether each system's difference to the first is more than chance by paired bootstrap resampling (Koehn 2004). Two systems or
/// more; throws as score_files does.
PairedComparison paired_bootstrap(const Scorer& scorer, const std::vector<std::filesystem::path>& systems,
                                  const std::vector<std::filesystem::path>& references, int64_t num_samples, const ScoreOptions& options);

}  // namespace lacuna

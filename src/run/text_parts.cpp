#include "run/text_parts.h"

#include <algorithm>
#include <optional>

#include "run/filter_parts.h"

namespace lacuna {
namespace {

/// A text that a reader goes through; what lies before the reader's place is read by a new one.
template <class Reader>
class TextParts : public PartMaker {
 public:
  bool go_to(int64_t line) override {
    if (!reader_ || reader_->line_number() > line) open(reader_);
    return reader_->skip(line - reader_->line_number()) && !reader_->is_at_end();
  }
  int64_t line() const override { return reader_->line_number(); }

  PartRecord make(Output& output, int64_t lines, const std::function<void()>& look) override {
    PartRecord record;
    write(*reader_, output, lines, look, record);
    record.is_last = reader_->is_at_end();
    record.share_read = reader_->share_read();
    return record;
  }

 private:
  /// Opens the text at its beginning.
  virtual void open(std::optional<Reader>& reader) = 0;
  virtual void write(Reader& reader, Output& output, int64_t lines, const std::function<void()>& look, PartRecord& record) = 0;

  std::optional<Reader> reader_;
};

class TranslatingParts : public TextParts<LineReader> {
 public:
  TranslatingParts(std::string input, Translator& translator, const TextTranslation& how, TranslationProgress& progress)
      : input_(std::move(input)), translator_(translator), how_(how), progress_(progress) {}

 private:
  void open(std::optional<LineReader>& reader) override { reader.emplace(input_); }
  void write(LineReader& reader, Output& output, int64_t lines, const std::function<void()>& look, PartRecord& record) override {
    how_.most_lines = lines;
    how_.look = look;
    const TranslatedText done = translate_text(reader, output, translator_, how_, progress_);
    record.lines = done.lines;
    record.bad_lines = done.bad_lines;
  }

  std::string input_;
  Translator& translator_;
  TextTranslation how_;
  TranslationProgress& progress_;
};

class ScoringParts : public TextParts<PairReader> {
 public:
  ScoringParts(const std::vector<LoadedModel>& models, const ScoreRequest& asked) : models_(models), asked_(asked) {}

 private:
  void open(std::optional<PairReader>& reader) override { open_pairs(reader, models_, asked_); }
  void write(PairReader& reader, Output& output, int64_t lines, const std::function<void()>& look, PartRecord& record) override {
    asked_.most_pairs = lines;
    asked_.look = look;
    const ScoredText done = score_text(reader, output, models_, asked_);
    record.lines = done.pairs;
    record.bad_lines = done.bad_pairs;
  }

  const std::vector<LoadedModel>& models_;
  ScoreRequest asked_;
};

class FilteringParts : public TextParts<PairReader> {
 public:
  explicit FilteringParts(const FilterScorer& scorer) : scorer_(scorer) {}

 private:
  void open(std::optional<PairReader>& reader) override { scorer_.open(reader); }
  void write(PairReader& reader, Output& output, int64_t lines, const std::function<void()>& look, PartRecord& record) override {
    while (record.lines < lines) {
      look();
      const auto most = std::min<int64_t>(kLinesAtATime, lines - record.lines);
      const std::vector<SentencePair> pairs = reader.next(static_cast<size_t>(most));
      if (pairs.empty()) break;
      output.write(filter_lines(scorer_.scores_of(pairs)));
      record.lines += std::ssize(pairs);
      record.bad_lines += count_passed_over(pairs);
    }
  }

  const FilterScorer& scorer_;
};

}  // namespace

std::unique_ptr<PartMaker> translating_parts(const std::string& input, Translator& translator, const TextTranslation& how,
                                             TranslationProgress& progress) {
  return std::make_unique<TranslatingParts>(input, translator, how, progress);
}

std::unique_ptr<PartMaker> scoring_parts(const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  return std::make_unique<ScoringParts>(models, asked);
}

std::unique_ptr<PartMaker> filtering_parts(const FilterScorer& scorer) {
  return std::make_unique<FilteringParts>(scorer);
}

}  // namespace lacuna

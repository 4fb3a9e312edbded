#include "text/spm_trainer.h"

#include <sentencepiece_trainer.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/line_reader.h"
#include "base/process.h"
#include "base/random.h"
#include "base/spelling.h"
#include "config/on_bad_line.h"
#include "text/invisible_characters.h"
#include "text/normalization.h"
#include "text/writing_system.h"

namespace lacuna {
namespace {

constexpr size_t kLongestLine = 16384;  // bytes; SentencePiece skips longer lines

/// A line to train on; `index` is its place among all lines.
struct SampledLine {
  int64_t index = 0;
  std::string text;
  bool is_target = false;
};

/// Draws at most `limit` lines, neither blank nor too long, uniformly from all texts (Vitter's reservoir sampling), in
/// the order of the texts. Counts those that there are.
std::vector<SampledLine> sampled_lines(const std::vector<SpmText>& texts, int64_t limit, uint64_t seed, TrainedSpm& counts) {
  std::vector<SampledLine> kept;
  RandomStream random(random_key(seed, RandomUse::kShuffle, 0, 0));
  int64_t seen = 0;
  const auto draw = [&](const std::string& line, bool is_target) {
    ++counts.lines;
    if (is_blank(line) || line.size() > kLongestLine) return;
    if (seen < limit) {
      kept.push_back({seen, line, is_target});
    } else if (const uint64_t slot = random.next_below(static_cast<uint64_t>(seen) + 1); slot < static_cast<uint64_t>(limit)) {
      kept[slot] = {seen, line, is_target};
    }
    ++seen;
  };
  for (const SpmText& text : texts) counts.bad_lines += text.read([&](const std::string& line) { draw(line, text.is_target); });
  counts.lines += counts.bad_lines;
  std::ranges::sort(kept, {}, &SampledLine::index);
  return kept;
}

class LineIterator : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<SampledLine>& lines) : lines_(lines) {}
  bool done() const override { return at_ >= lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_].text; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<SampledLine>& lines_;
  size_t at_ = 0;
};

/// Returns the number that follows `words` in `text`, or an empty text.
std::string number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return {};
  const size_t begin = at + words.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

/// Rewrites SentencePiece's error message in the terms of our options.
std::string explain(const std::string& message, const DataOptions& options) {
  const std::string size = "vocabulary size " + std::to_string(options.vocab_size) + " (data.vocab_size, --vocab-size)";
  if (const std::string least = number_after(message, "required_chars. " + std::to_string(options.vocab_size) + " vs "); !least.empty())
    return size + ": the characters of this text alone take " + least + "; set it higher, or the character coverage below " +
           fmt::format("{}", options.character_coverage);
  return size + ": SentencePiece could not be trained: " + message;
}

std::string names_of(const std::vector<SpmText>& texts) {
  std::vector<std::string> names;
  names.reserve(texts.size());
  for (const SpmText& text : texts) names.push_back(text.name);
  return join(names);
}

std::string train_on(const std::vector<SampledLine>& lines, const std::string& rule, const DataOptions& options) {
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.spm_type == SubwordType::kBpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"user_defined_symbols", join(options.spm_symbols, ",")},
      {"byte_fallback", options.spm_byte_fallback ? "true" : "false"},
      {"normalization_rule_name", rule},
      {"num_threads", "2"},  // fixed: the model's bytes depend on it
      {"max_sentence_length", std::to_string(kLongestLine)},
      {"minloglevel", "2"},
  };
  std::string bytes;
  const auto train = [&] {
    LineIterator iterator(lines);
    return sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &bytes);
  };
  auto status = train();
  if (status.ToString().find("set it to a value <= ") != std::string::npos) {  // a bound that need not hold for other sizes
    settings["hard_vocab_limit"] = "false";
    status = train();
  }
  if (!status.ok()) throw DataError(explain(status.ToString(), options));
  return bytes;
}

std::string train_here(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed, TrainedSpm& counts) {
  std::vector<SampledLine> lines = sampled_lines(texts, options.spm_sample_lines, seed, counts);
  if (lines.empty())
    throw DataError(fmt::format(
        "{}: no line to train a SentencePiece model on: {}", names_of(texts),
        why_none_is_left(counts.bad_lines, counts.lines, fmt::format("empty or blank, or longer than {} bytes", kLongestLine))));
  const auto is_target = [](const auto& text) { return text.is_target; };
  const bool has_targets = std::ranges::any_of(texts, is_target), has_sources = !std::ranges::all_of(texts, is_target);
  if (!has_targets || !has_sources || options.src_normalization == options.tgt_normalization)
    return train_on(lines, has_sources ? options.src_normalization : options.tgt_normalization, options);
  const Normalizer src(options.src_normalization), tgt(options.tgt_normalization);
  for (SampledLine& line : lines) line.text = (line.is_target ? tgt : src)(line.text);
  return with_rules(train_on(lines, "identity", options), src, tgt);
}

}  // namespace

SpmText text_file(const std::string& file, Side side, OnBadLine bad_lines, const std::string& remedy) {
  const auto read = [file, side, bad_lines, remedy](const auto& use) {
    LineReader reader(file);
    int64_t passed_over = 0;
    for (std::string line; next_good_line(reader, line, bad_lines, passed_over, remedy);)
      use(side == Side::kSrc ? without_invisible_characters(line) : line);
    return passed_over;
  };
  return {.name = file, .read = read, .is_target = side == Side::kTgt};
}

TrainedSpm train_counting_lines(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed) {
  // In a child process: training takes gigabytes that the allocator would keep, and aborts the process on some errors.
  const auto train = [&] {
    TrainedSpm counts;
    const std::string model = train_here(texts, options, seed, counts);
    return fmt::format("{} {} {}", counts.lines, counts.bad_lines, model);
  };
  const std::string answer = run_in_child(train, fmt::format("training a SentencePiece model on {}", names_of(texts)));
  TrainedSpm trained;
  std::istringstream stream(answer);
  stream >> trained.lines >> trained.bad_lines;
  trained.model = answer.substr(static_cast<size_t>(stream.tellg()) + 1);
  return trained;
}

std::string train_sentencepiece(const std::vector<SpmText>& texts, const DataOptions& options, uint64_t seed) {
  return train_counting_lines(texts, options, seed).model;
}

std::string train_sentencepiece(const std::vector<std::string>& files, const DataOptions& options, uint64_t seed) {
  std::vector<SpmText> texts;
  for (const std::string& file : files) {
    require_readable_file(file, "text to train a SentencePiece model on");
    texts.push_back(text_file(file, Side::kSrc));
  }
  return train_sentencepiece(texts, options, seed);
}

}  // namespace lacuna

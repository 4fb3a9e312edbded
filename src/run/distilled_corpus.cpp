#include "run/distilled_corpus.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/line_reader.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// A line of text and its translation.
struct Translated {
  std::string src, tgt;
  double score = 0;
};

/// Reads a text beside the parts of its translation.
class TranslatedReader {
 public:
  TranslatedReader(const std::filesystem::path& mono, const JobFolder& job) : mono_(mono), job_(job), parts_(job.known_parts()) {
    if (!parts_) throw DataError(job.path().string() + ": its last part is not there; expected a whole translation");
  }

  bool next(Translated& pair) {
    std::string line;
    const bool has_translation = next_of_parts(line), has_source = next_source(pair.src);
    if (has_translation != has_source)
      throw DataError(fmt::format("{}: has {} lines of translation than {}, which it is to be of", job_.path().string(),
                                  has_translation ? "more" : "fewer", mono_.place()));
    if (!has_source) return false;
    const size_t tab = line.find('\t');
    const auto [end, error] = std::from_chars(line.data(), line.data() + std::min(tab, line.size()), pair.score);
    if (tab == std::string::npos || error != std::errc() || end != line.data() + tab)
      throw DataError(fmt::format("{}: \"{}\" is no score, tab and translation", part_->place(), line.substr(0, tab)));
    pair.tgt = line.substr(tab + 1);
    return true;
  }

 private:
  /// A line that cannot be read has an empty translation, which is left out.
  bool next_source(std::string& line) {
    try {
      return mono_.next(line);
    } catch (const LineError&) {
      return true;
    }
  }

  bool next_of_parts(std::string& line) {
    while (!part_ || !part_->next(line)) {
      if (number_ == *parts_) return false;
      part_.emplace(job_.part_file(number_++));
    }
    return true;
  }

  LineReader mono_;
  const JobFolder& job_;
  std::optional<int64_t> parts_;
  std::optional<LineReader> part_;
  int64_t number_ = 0;
};

int64_t characters_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

/// Calls use(pair) for each pair whose lengths fit; counts the others.
DistilledText for_fitting(const std::filesystem::path& mono, const JobFolder& job, const DistillFilter& filter,
                          const std::function<void(const Translated&)>& use) {
  DistilledText counts;
  TranslatedReader reader(mono, job);
  for (Translated pair; reader.next(pair); ++counts.lines) {
    const auto [shorter, longer] = std::minmax({characters_of(pair.src), characters_of(pair.tgt)});
    if (shorter == 0)
      ++counts.empty;
    else if (static_cast<double>(longer) > filter.max_length_ratio * static_cast<double>(shorter))
      ++counts.uneven;
    else
      use(pair);
  }
  return counts;
}

}  // namespace

std::string DistilledText::text() const {
  return fmt::format("{} of {} kept; {} with an empty side, {} of too different lengths, {} with a low score", kept, counted(lines, "line"),
                     empty, uneven, low_scores);
}

DistilledText write_distilled(const std::filesystem::path& mono, const JobFolder& job, const DistillFilter& filter,
                              const std::filesystem::path& src, const std::filesystem::path& tgt) {
  std::vector<float> scores;
  for_fitting(mono, job, filter, [&](const Translated& pair) { scores.push_back(static_cast<float>(pair.score)); });
  float lowest = -std::numeric_limits<float>::infinity();
  const auto wanted = static_cast<size_t>(std::llround(filter.keep * static_cast<double>(scores.size())));
  if (wanted < scores.size()) {
    const auto last = scores.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(wanted, 1)) - 1;
    std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
    lowest = *last;
  }
  FileReplacement src_file(src), tgt_file(tgt);
  int64_t low = 0, kept = 0;
  DistilledText counts = for_fitting(mono, job, filter, [&](const Translated& pair) {
    if (static_cast<float>(pair.score) < lowest) {
      ++low;
      return;
    }
    ++kept;
    src_file.writer().write(pair.src + "\n");
    tgt_file.writer().write(pair.tgt + "\n");
  });
  counts.low_scores = low;
  counts.kept = kept;
  if (kept == 0) throw DataError(mono.string() + ": no translation is left to learn from (" + counts.text() + ")");
  src_file.finish();
  tgt_file.finish();
  return counts;
}

}  // namespace lacuna

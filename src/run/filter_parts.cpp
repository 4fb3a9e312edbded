#include "run/filter_parts.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/line_reader.h"
#include "base/log.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Reads a line of filter_lines(). Returns false if it is none.
bool read_scores(std::string_view line, PairScore& score) {
  float* const values[] = {&score.null_rate, &score.log_prob, &score.null_contrast};
  const char *at = line.data(), *const end = at + line.size();
  for (float* const value : values) {
    if (value != values[0] && (at == end || *at++ != '\t')) return false;
    const auto [next, error] = std::from_chars(at, end, *value);
    if (error != std::errc()) return false;
    at = next;
  }
  score.is_scored = !std::isnan(score.log_prob);
  if (!score.is_scored) score = {};
  return at == end;
}

}  // namespace

std::string filter_lines(const std::vector<PairScore>& scores) {
  std::string lines;
  for (const PairScore& score : scores)
    lines += score.is_scored ? fmt::format("{}\t{}\t{}\n", score.null_rate, score.log_prob, score.null_contrast) : "nan\tnan\tnan\n";
  return lines;
}

std::vector<PairScore> filter_scores_of(const JobFolder& job) {
  constexpr size_t kMostShown = 60;
  std::vector<PairScore> scores;
  const int64_t parts = job.known_parts().value_or(0);
  for (int64_t part = 0; part < parts; ++part) {
    LineReader reader(job.part_file(part));
    for (std::string line; reader.next(line);)
      if (!read_scores(line, scores.emplace_back()))
        throw DataError(
            fmt::format("{}: \"{}\" is not what lacuna writes; expected three numbers with tabs between them. Remove the part and "
                        "its record, and start a worker",
                        reader.place(), printable(line.substr(0, kMostShown))));
  }
  return scores;
}

void filter_from_parts(const JobFolder& job, const FilterCorpus& corpus, const FilterFlags& flags, const FilterScorer& scorer,
                       int64_t bad_pairs) {
  constexpr std::chrono::hours kPatience(24);  // behind which it ranks as well, and writes the same bytes
  constexpr uint64_t kMostBytes = 1 << 16;
  FileLock lock(job.path() / "filter.lock");
  lock.take_within(kPatience, "ranking");
  const fs::path done = job.path() / "filter.json", folder = fs::absolute(flags.folder).lexically_normal();
  const nlohmann::ordered_json asked = {{"folder", folder.string()}, {"by", scorer.by()}, {"keep", flags.keep}};
  const std::string text = json_text(asked, 2) + "\n";
  std::error_code error;
  if (fs::exists(folder / "report.txt", error) && fs::exists(done, error) &&
      FileReader::in_untrusted_folder(done).whole(kMostBytes) == text)
    return;
  write_filtered(corpus, flags, scorer.by(), filter_scores_of(job), bad_pairs);
  write_file_atomically(done, text);
}

}  // namespace lacuna

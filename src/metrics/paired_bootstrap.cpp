#include <cctype>
#include <cmath>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "metrics/run_sacrebleu.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// sacreBLEU's JSON fails in this mode (its TER is a float32, which Python's json refuses), so the numbers come from the table it prints:
//
//   │        System │  BLEU (μ ± 95% CI)  │  TER (μ ± 95% CI)  │
//   │ Baseline: one │  43.0 (43.3 ± 7.0)  │ 15.4 (15.6 ± 3.8)  │
//   │           two │ 60.4 (55.1 ± 37.9)  │ 23.1 (24.0 ± 13.8) │
//   │               │    (p = 0.0099)*    │    (p = 0.2376)    │

using Row = std::vector<std::string>;

/// The cells of a line of the table; none if it is not one.
Row cells_of(const std::string& line) {
  static const std::string kBorder = "│";
  Row cells;
  if (!line.starts_with(kBorder)) return cells;
  for (size_t begin = kBorder.size(), end; (end = line.find(kBorder, begin)) != std::string::npos; begin = end + kBorder.size())
    cells.push_back(line.substr(begin, end - begin));
  return cells;
}

std::vector<Row> table_rows(const std::string& report) {
  std::vector<Row> rows;
  std::istringstream stream(report);
  for (std::string line; std::getline(stream, line);)
    if (Row cells = cells_of(line); !cells.empty()) rows.push_back(std::move(cells));
  return rows;
}

/// The name of a metric in ScoreOptions::metrics: `BLEU (μ ± 95% CI)` is bleu, `chrF2++` is chrf.
std::string metric_key(const std::string& heading) {
  std::string key;
  for (const char c : heading.substr(0, heading.find(" (")))
    if (std::isalpha(static_cast<unsigned char>(c))) key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

/// The lines ` - BLEU    nrefs:1|...` below the table.
std::vector<std::pair<std::string, std::string>> read_signatures(const std::string& report) {
  static const std::regex kSignature(R"( - (\S+) +(nrefs:\S+))");
  std::vector<std::pair<std::string, std::string>> signatures;
  std::istringstream stream(report);
  std::smatch match;
  for (std::string line; std::getline(stream, line);)
    if (std::regex_match(line, match, kSignature)) signatures.emplace_back(metric_key(match[1]), match[2]);
  return signatures;
}

bool is_blank(const std::string& cell) {
  return cell.find_first_not_of(' ') == std::string::npos;
}

/// Adds what a cell says of a metric to its system: scores, or below them the p-value. False if the cell is not as above.
bool read_cell(const std::string& cell, const std::string& key, PairedSystem& system) {
  static const std::regex kScores(R"( *([-0-9.]+) \(([-0-9.]+|nan) ± ([-0-9.]+|nan)\) *)");
  static const std::regex kChance(R"( *\(p = ([0-9.]+)\)\*? *)");
  std::smatch match;
  if (std::regex_match(cell, match, kScores)) {
    const PairedScore score = {.score = std::stod(match[1]), .mean = std::stod(match[2]), .interval = std::stod(match[3])};
    system.scores.emplace_back(key, score);
    return true;
  }
  if (!std::regex_match(cell, match, kChance)) return is_blank(cell);
  for (auto& [name, score] : system.scores)
    if (name == key) score.p_value = std::stod(match[1]);
  return true;
}

/// The systems of the table, without their files' names. Empty if the report is not as above.
std::vector<PairedSystem> read_systems(const std::string& report) {
  std::vector<PairedSystem> systems;
  const std::vector<Row> rows = table_rows(report);
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row &headings = rows.front(), &row = rows[i];
    if (row.size() < headings.size()) return {};
    if (systems.empty() || !is_blank(row.front())) systems.emplace_back();
    for (size_t column = 1; column < headings.size(); ++column) {
      const std::string& cell = row[row.size() - headings.size() + column];  // counted from the end: a name may hold a border
      if (!read_cell(cell, metric_key(headings[column]), systems.back())) return {};
    }
  }
  return systems;
}

/// UsageError if there is nothing to compare.
void require_different(const std::vector<fs::path>& systems) {
  if (systems.size() < 2) throw UsageError("a paired bootstrap compares systems; expected the translations of two or more");
  for (size_t i = 0; i < systems.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (std::error_code error; systems[i] == systems[j] || fs::equivalent(systems[i], systems[j], error))
        throw UsageError(systems[i].string() + " is given twice; a paired bootstrap compares different systems");
}

bool is_same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Whether metric m shows no difference between system i and the baseline, but for a p as small as can be.
bool seems_alike(const std::vector<PairedSystem>& systems, size_t i, size_t m, int64_t num_samples) {
  const PairedScore &score = systems[i].scores[m].second, &baseline = systems[0].scores[m].second;
  const double least = 1 / static_cast<double>(num_samples + 1), rounding = 5e-5;
  return is_same(score.score, baseline.score) && is_same(score.mean, baseline.mean) && is_same(score.interval, baseline.interval) &&
         score.p_value.value_or(1) <= least + rounding;
}

bool any_seems_alike(const std::vector<PairedSystem>& systems, int64_t num_samples) {
  for (size_t i = 1; i < systems.size(); ++i)
    for (size_t m = 0; m < systems[i].scores.size(); ++m)
      if (seems_alike(systems, i, m, num_samples)) return true;
  return false;
}

/// sacreBLEU counts resamples whose difference is larger than the one found: where texts differ only in what a metric
/// does not see, it finds none and calls that significant. `exact` are the systems with more digits than the table has.
void correct_where_nothing_differs(PairedComparison& comparison, const std::vector<PairedSystem>& exact, size_t i, int64_t num_samples) {
  PairedSystem& system = comparison.systems[i];
  std::string alike;
  for (size_t m = 0; m < system.scores.size(); ++m) {
    if (!seems_alike(exact, i, m, num_samples)) continue;
    system.scores[m].second.p_value = 1;
    alike += (alike.empty() ? "" : ", ") + system.scores[m].first;
  }
  if (alike.empty()) return;
  comparison.report +=
      system.hypotheses.string() + " does not differ from the baseline in " + alike + ": p is 1 there, not what the table says.\n";
}

/// sacreBLEU knows copies by their own names: those of the systems in their place, as wide, for its table.
std::string with_names(std::string report, const ScoredFiles& files, const std::vector<fs::path>& systems) {
  for (size_t i = systems.size(); i-- > 0;) {  // the last first: the names of its copies begin as those of others
    const std::string& copy = files.systems()[i];
    std::string name = systems[i].string();
    if (copy == name) continue;
    if (name.size() < copy.size()) name.resize(copy.size(), ' ');
    for (size_t at = report.find(copy); at != std::string::npos; at = report.find(copy, at + name.size()))
      report.replace(at, copy.size(), name);
  }
  return report;
}

}  // namespace

PairedComparison paired_bootstrap(const Scorer& scorer, const std::vector<fs::path>& systems, const std::vector<fs::path>& references,
                                  int64_t num_samples, const ScoreOptions& options) {
  require_different(systems);
  const ScoredFiles files(systems, references, options.joiner, options.bad_lines);
  const auto run = [&](const char* digits) {
    return run_sacrebleu(
        scorer, files, options,
        {"--paired-bs", "--paired-bs-n", std::to_string(num_samples), "-f", "text", "-w", digits, "--no-color", "--quiet"});
  };
  const ProcessResult result = run("2");
  PairedComparison comparison = {.systems = read_systems(result.output),
                                 .signatures = read_signatures(result.output),
                                 .report = with_names(result.output, files, systems),
                                 .num_lines = files.num_lines(),
                                 .bad_lines = files.bad_lines()};
  if (comparison.systems.size() != systems.size()) refuse_answer(scorer, result.output);
  for (size_t i = 0; i < systems.size(); ++i) comparison.systems[i].hypotheses = systems[i];
  if (!any_seems_alike(comparison.systems, num_samples)) return comparison;
  const ProcessResult precise = run("8");
  const std::vector<PairedSystem> exact = read_systems(precise.output);
  if (exact.size() != systems.size()) refuse_answer(scorer, precise.output);
  for (size_t i = 1; i < systems.size(); ++i) correct_where_nothing_differs(comparison, exact, i, num_samples);
  return comparison;
}

}  // namespace lacuna

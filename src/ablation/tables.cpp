#include "ablation/tables.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNothing = "–";
constexpr const char* kSites[] = {"encoder_self", "decoder_self", "cross"};

using Row = std::vector<std::string>;

const Row& headings() {
  static const Row row = {"attention",          "BLEU",
                          "difference (p)",     "chrF",
                          "validation loss",    "zero weights, %: encoder, decoder, cross",
                          "training, tokens/s", "translation, tokens/s",
                          "parameters",         "memory, MiB",
                          "epochs (updates)",   "seeds"};
  return row;
}

std::string with_deviation(const std::optional<Mean>& value, int decimals) {
  if (!value) return kNothing;
  const std::string mean = fmt::format("{:.{}f}", value->mean, decimals);
  return value->count > 1 ? mean + fmt::format(" ± {:.{}f}", value->deviation, decimals) : mean;
}

/// 1234567.8 is 1,234,568.
std::string whole(const std::optional<Mean>& value) {
  if (!value) return kNothing;
  std::string digits = std::to_string(std::llround(value->mean));
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

/// "−0.31 (0.012, 0.200)"; the variant it is compared with stands there if it is not the first.
std::string difference_text(const VariantSummary& variant, const std::string& first) {
  if (!variant.difference) return kNothing;
  std::string text = fmt::format("{}{:.2f}", *variant.difference < 0 ? "−" : "+", std::abs(*variant.difference));
  if (variant.against != first) text += " to " + variant.against;
  std::string chances;
  for (const double p : variant.p_values) chances += fmt::format("{}{:.3f}", chances.empty() ? "" : ", ", p);
  return text + " (" + chances + ")";
}

std::string sparsity_text(const VariantSummary& variant) {
  std::string text;
  for (const char* const site : kSites) {
    const auto found = variant.sparsity.find(site);
    text.append(text.empty() ? "" : ", ").append(found == variant.sparsity.end() ? kNothing : fmt::format("{:.0f}", 100 * found->second));
  }
  return variant.sparsity.empty() ? kNothing : text;
}

std::string seeds_text(const VariantSummary& variant) {
  std::string text;
  for (const int64_t seed : variant.seeds) text.append(text.empty() ? "" : ", ").append(std::to_string(seed));
  return text.empty() ? kNothing : text;
}

Row row_of(const VariantSummary& variant, const std::string& first) {
  const bool has_failed = variant.seeds.empty();
  const std::string epochs = variant.epochs ? fmt::format("{:.0f} ({})", variant.epochs->mean, whole(variant.updates)) : kNothing;
  return {variant.name,
          has_failed ? "failed" : with_deviation(variant.bleu, 2),
          difference_text(variant, first),
          with_deviation(variant.chrf, 2),
          with_deviation(variant.valid_loss, 3),
          sparsity_text(variant),
          whole(variant.train_speed),
          whole(variant.translate_speed),
          whole(variant.parameters),
          whole(variant.peak_mebibytes),
          epochs,
          seeds_text(variant)};
}

std::vector<Row> rows_of(const AblationReport& report) {
  std::vector<Row> rows;
  for (const VariantSummary& variant : report.variants) rows.push_back(row_of(variant, report.variants.front().name));
  return rows;
}

std::string explanation(const AblationReport& report) {
  return "BLEU and chrF by sacreBLEU on " + report.test_set + " (" + report.signature +
         "), ± the standard deviation over seeds. difference: BLEU less that of " + report.variants.front().name +
         " with the same seed (or with its first seed, where that has not run), and for each seed p of a paired bootstrap. validation "
         "loss: nats per target token. zero weights: at the "
         "last "
         "validation. training: target tokens, without validations; translation: output tokens. memory: the most that training had.";
}

std::string on_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string markdown_line(const Row& row) {
  std::string line = "|";
  for (const std::string& cell : row) {
    line += " ";
    for (const char c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
    line += " |";
  }
  return line + "\n";
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string latex_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\textbackslash{}";
    else if (c == '~' || c == '^')
      escaped += std::string("\\") + c + "{}";
    else if (std::string("_%&#${}").find(c) != std::string::npos)
      escaped += std::string("\\") + c;
    else
      escaped += c;
  }
  replace_all(escaped, "±", "$\\pm$");
  replace_all(escaped, "−", "$-$");
  replace_all(escaped, "–", "--");
  return escaped;
}

std::string latex_line(const Row& row) {
  std::string line;
  for (const std::string& cell : row) line += (line.empty() ? "" : " & ") + latex_text(cell);
  return line + " \\\\\n";
}

ordered_json as_json(const std::optional<Mean>& value) {
  if (!value) return nullptr;
  return {{"mean", value->mean}, {"standard_deviation", value->deviation}, {"runs", value->count}};
}

ordered_json as_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json as_json(const VariantSummary& variant) {
  ordered_json failures = ordered_json::array();
  for (const auto& [seed, error] : variant.failures) failures.push_back({{"seed", seed}, {"error", error}});
  return {{"name", variant.name},
          {"seeds", variant.seeds},
          {"bleu", as_json(variant.bleu)},
          {"bleu_by_seed", variant.bleu_values},
          {"bleu_interval", as_json(variant.bleu_interval)},
          {"against", variant.against},
          {"difference", as_json(variant.difference)},
          {"p_values", variant.p_values},
          {"chrf", as_json(variant.chrf)},
          {"valid_loss", as_json(variant.valid_loss)},
          {"sparsity", variant.sparsity},
          {"train_tokens_per_second", as_json(variant.train_speed)},
          {"translate_tokens_per_second", as_json(variant.translate_speed)},
          {"parameters", as_json(variant.parameters)},
          {"peak_mebibytes", as_json(variant.peak_mebibytes)},
          {"epochs", as_json(variant.epochs)},
          {"updates", as_json(variant.updates)},
          {"hours", as_json(variant.hours)},
          {"failures", failures}};
}

std::string failures_text(const AblationReport& report) {
  std::string lines;
  for (const VariantSummary& variant : report.variants)
    for (const auto& [seed, error] : variant.failures) lines += fmt::format("- {}, seed {}: {}\n", variant.name, seed, on_one_line(error));
  return lines.empty() ? "" : "\nFailed:\n\n" + lines;
}

std::string left_out_text(const AblationReport& report) {
  std::map<std::string, std::string> seeds;  // by variant
  for (const RunResult& run : report.left_out) {
    std::string& text = seeds[run.variant];
    text.append(text.empty() ? "" : ", ").append(std::to_string(run.seed));
  }
  std::string lines;
  for (const auto& [variant, text] : seeds)
    lines += fmt::format("- {}, {} {}\n", variant, text.find(',') == std::string::npos ? "seed" : "seeds", text);
  if (lines.empty()) return "";
  return "\nLeft out, as they are not of this command's options and test set, or were made by an older Lacuna:\n\n" + lines;
}

/// The table and what its numbers are.
std::string markdown_rows(const AblationReport& report) {
  if (report.variants.empty()) return "No run has ended yet.\n";
  std::string text = markdown_line(headings());
  for (size_t i = 0; i < headings().size(); ++i) text += "| --- ";
  text += "|\n";
  for (const Row& row : rows_of(report)) text += markdown_line(row);
  if (!report.test_set.empty()) text.append("\n").append(explanation(report)).append("\n");
  return text;
}

}  // namespace

std::string markdown_table(const AblationReport& report) {
  return markdown_rows(report) + failures_text(report) + left_out_text(report);
}

std::string latex_table(const AblationReport& report) {
  std::string text = "% Written by lacuna ablate. Needs \\usepackage{booktabs}.\n\\begin{tabular}{l" +
                     std::string(headings().size() - 1, 'r') + "}\n\\toprule\n" + latex_line(headings()) + "\\midrule\n";
  for (const Row& row : rows_of(report)) text += latex_line(row);
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string json_report(const AblationReport& report) {
  ordered_json variants = ordered_json::array(), runs = ordered_json::array(), left_out = ordered_json::array();
  for (const VariantSummary& variant : report.variants) variants.push_back(as_json(variant));
  for (const RunResult& run : report.runs) runs.push_back(to_json(run));
  for (const RunResult& run : report.left_out) left_out.push_back(to_json(run));
  const ordered_json json = {
      {"test_set", report.test_set}, {"signature", report.signature}, {"variants", variants}, {"runs", runs}, {"left_out", left_out}};
  return json_text(json, 2) + "\n";
}

}  // namespace lacuna

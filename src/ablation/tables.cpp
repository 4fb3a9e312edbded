#include "ablation/tables.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "attention/registry.h"
#include "base/json_text.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNothing = "–";
constexpr const char* kSites[] = {"encoder_self", "decoder_self", "cross"};

using Row = std::vector<std::string>;

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

/// "−0.31 (0.012, 0.200)": BLEU less that of the other variant, which is named if it is not the first, and p for each seed.
std::string difference_text(const VariantSummary& variant, const std::string& first) {
  if (!variant.difference) return kNothing;
  std::string text = fmt::format("{}{:.2f}", *variant.difference < 0 ? "−" : "+", std::abs(*variant.difference));
  if (variant.against != first) text += " to " + display_name(variant.against);
  return text + fmt::format(" ({:.3f})", fmt::join(variant.p_values, ", "));
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
  return variant.seeds.empty() ? kNothing : fmt::format("{}", fmt::join(variant.seeds, ", "));
}

/// "0.7 (300)": a decimal only where the epochs are few and not whole.
std::string epochs_text(const VariantSummary& variant) {
  if (!variant.epochs) return kNothing;
  const double epochs = variant.epochs->mean;
  const bool has_decimal = epochs < 9.95 && std::abs(epochs - std::round(epochs)) >= 0.05;
  return fmt::format("{:.{}f} ({})", epochs, has_decimal ? 1 : 0, whole(variant.updates));
}

std::string bleu_text(const VariantSummary& variant) {
  return variant.seeds.empty() ? "failed" : with_deviation(variant.bleu, 2);
}

enum class Best { kNone, kHighest, kLowest };

/// A column of the tables. `best`: which of its values is in bold, by the mean that `number` points to.
struct Column {
  const char* key;
  const char* heading;
  const char* short_heading;  ///< in LaTeX
  std::string (*text)(const VariantSummary&, const std::string& first);
  Best best = Best::kNone;
  std::optional<Mean> VariantSummary::*number = nullptr;
};

using V = VariantSummary;
using Text = const std::string&;
const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"bleu", "BLEU", "BLEU", [](const V& v, Text) { return bleu_text(v); }, Best::kHighest, &V::bleu},
      {"difference", "difference (p)", "$\\Delta$ (p)", difference_text},
      {"chrf", "chrF", "chrF", [](const V& v, Text) { return with_deviation(v.chrf, 2); }, Best::kHighest, &V::chrf},
      {"loss", "validation loss", "loss", [](const V& v, Text) { return with_deviation(v.valid_loss, 3); }, Best::kLowest, &V::valid_loss},
      {"zeros", "zero weights, %: encoder, decoder, cross", "zeros, \\%", [](const V& v, Text) { return sparsity_text(v); }},
      {"train_speed", "training, tokens/s", "training, tokens/s", [](const V& v, Text) { return whole(v.train_speed); }, Best::kHighest,
       &V::train_speed},
      {"translate_speed", "translation, tokens/s", "translation, tokens/s", [](const V& v, Text) { return whole(v.translate_speed); },
       Best::kHighest, &V::translate_speed},
      {"parameters", "parameters", "parameters", [](const V& v, Text) { return whole(v.parameters); }},
      {"memory", "memory, MiB", "memory, MiB", [](const V& v, Text) { return whole(v.peak_mebibytes); }, Best::kLowest, &V::peak_mebibytes},
      {"epochs", "epochs (updates)", "epochs (updates)", [](const V& v, Text) { return epochs_text(v); }},
      {"seeds", "seeds", "seeds", [](const V& v, Text) { return seeds_text(v); }}};
  return all;
}

/// The columns of these keys, in their order.
std::vector<Column> chosen(const std::vector<std::string>& keys) {
  std::vector<Column> found;
  found.reserve(keys.size());
  for (const std::string& key : keys)
    found.push_back(*std::ranges::find_if(columns(), [&](const Column& column) { return column.key == key; }));
  return found;
}

/// The best value of a column; none where all variants that have one have the same.
std::optional<double> best_of(const Column& column, const std::vector<VariantSummary>& variants) {
  std::vector<double> values;
  for (const VariantSummary& variant : variants)
    if (column.best != Best::kNone && variant.*column.number) values.push_back((variant.*column.number)->mean);
  if (values.empty()) return {};
  const auto [lowest, highest] = std::ranges::minmax(values);
  if (lowest == highest) return {};
  return column.best == Best::kHighest ? highest : lowest;
}

/// A row a variant: its display name and a cell for each column, the best of which `bold` wraps; `escape` makes text of the format.
template <class Escape, class Bold>
std::vector<Row> rows_of(const AblationReport& report, const std::vector<Column>& columns, Escape escape, Bold bold) {
  std::vector<Row> rows;
  for (const VariantSummary& variant : report.variants) rows.push_back({escape(display_name(variant.name))});
  for (const Column& column : columns) {
    const std::optional<double> best = best_of(column, report.variants);
    for (size_t i = 0; i < rows.size(); ++i) {
      const VariantSummary& variant = report.variants[i];
      const std::string cell = escape(column.text(variant, report.variants.front().name));
      const bool is_best = best && variant.*column.number && (variant.*column.number)->mean == *best;
      rows[i].push_back(is_best ? bold(cell) : cell);
    }
  }
  return rows;
}

std::string explanation(const AblationReport& report) {
  return "BLEU and chrF by sacreBLEU on " + report.test_set + " (" + report.signature +
         "), ± the standard deviation over seeds; the best value of a column is in bold. Difference: BLEU less that of " +
         display_name(report.variants.front().name) +
         " with the same seed (or with its first seed, where that has not run), and p of a paired bootstrap for each seed. Validation "
         "loss: nats per target token. Zero weights: at the last validation. Training: target tokens, without validations; translation: "
         "output tokens. Memory: the peak of training.";
}

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string in_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string markdown_line(const Row& row) {
  return "| " + join(row, " | ") + " |\n";
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string in_latex(const std::string& text) {
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
  return join(row, " & ") + " \\\\\n";
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

/// The table, and below it the definitions of its numbers.
std::string markdown_rows(const AblationReport& report, const std::vector<Column>& columns) {
  if (report.variants.empty()) return "No run has ended yet.\n";
  Row headings = {"attention"};
  for (const Column& column : columns) headings.emplace_back(column.heading);
  std::string text = markdown_line(headings) + markdown_line(Row(headings.size(), "---"));
  for (const Row& row : rows_of(report, columns, in_markdown, [](const std::string& cell) { return "**" + cell + "**"; }))
    text += markdown_line(row);
  if (!report.test_set.empty()) text.append("\n").append(explanation(report)).append("\n");
  return text;
}

/// Returns the name of an attention type in prose; nothing for other words.
std::optional<std::string> type_in_prose(const std::string& word) {
  static const std::map<std::string, std::string> others = {
      {"entmax15", "1.5-entmax"}, {"rela", "ReLA"}, {"span", "adaptive span"}, {"topk", "top-k"}};
  if (const auto other = others.find(word); other != others.end()) return other->second;
  const std::vector<std::string> known = types::known_types();
  return std::ranges::find(known, word) == known.end() ? std::nullopt : std::optional(word);
}

}  // namespace

std::vector<std::string> table_columns() {
  std::vector<std::string> keys;
  for (const Column& column : columns()) keys.emplace_back(column.key);
  return keys;
}

std::string display_name(const std::string& variant) {
  std::string text;
  for (size_t begin = 0, end = 0; begin <= variant.size(); begin = end + 1) {
    end = std::min(variant.find('-', begin), variant.size());
    const std::string part = variant.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const std::string word = equals == std::string::npos ? part : part.substr(equals + 1);
    const std::optional<std::string> type = type_in_prose(word);
    if (equals == std::string::npos ? begin > 0 || !type : word.empty()) return variant;
    const std::string value = type.value_or(word);
    text += (text.empty() ? "" : ", ") + (equals == std::string::npos ? value : part.substr(0, equals) + " = " + value);
  }
  return text;
}

std::string markdown_table(const AblationReport& report, const std::vector<std::string>& keys) {
  return markdown_rows(report, keys.empty() ? columns() : chosen(keys)) + failures_text(report) + left_out_text(report);
}

std::string latex_table(const AblationReport& report, const std::vector<std::string>& keys) {
  const std::vector<Column> columns =
      chosen(keys.empty() ? std::vector<std::string>{"bleu", "difference", "chrf", "zeros", "train_speed"} : keys);
  Row headings = {"attention"};
  for (const Column& column : columns) headings.emplace_back(column.short_heading);
  std::string text =
      "% Written by lacuna ablate. Needs \\usepackage{booktabs}. Zeros: encoder, decoder, cross attention.\n\\begin{tabular}{l" +
      std::string(columns.size(), 'r') + "}\n\\toprule\n" + latex_line(headings) + "\\midrule\n";
  for (const Row& row : rows_of(report, columns, in_latex, [](const std::string& cell) { return "\\textbf{" + cell + "}"; }))
    text += latex_line(row);
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

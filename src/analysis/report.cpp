#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/analysis_folder.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

/// The most bytes of sentences and their weights in base64; charts and scripts take less than the rest of 3 MB.
constexpr size_t kMostWeightBytes = ExploredSentences::kMostPackedBytes / 3 * 4;

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

/// Returns JSON text that cannot end a script element.
std::string dumped(const ordered_json& json) {
  std::string text;
  for (const char c : json_text(json)) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

ordered_json tokens_and_weights(const ExploredSentence& sentence) {
  ordered_json json = {{"src", sentence.src},
                       {"tgt", sentence.tgt},
                       {"src_words", sentence.src_words},
                       {"tgt_words", sentence.tgt_words},
                       {"scales", sentence.scales}};
  if (!sentence.joiner.empty()) json["joiner"] = sentence.joiner;
  json["weights"] = base64(sentence.levels);
  return json;
}

/// Links by how sure they are: {"sure": [[source word, target word], ...], "possible": those that are not sure}.
ordered_json gold_json(const GoldLinks& gold) {
  Links possible;
  std::set_difference(gold.possible.begin(), gold.possible.end(), gold.sure.begin(), gold.sure.end(), std::back_inserter(possible));
  return {{"sure", gold.sure}, {"possible", possible}};
}

/// A sentence with the weights of each model.
ordered_json explored_json(const std::vector<const ExploredSentence*>& kept) {
  const ExploredSentence& first = *kept.front();
  ordered_json one = {{"line", first.line}, {"src_text", first.src_text}, {"tgt_text", first.tgt_text}};
  if (first.gold) one["gold"] = gold_json(*first.gold);
  one["models"] = ordered_json::array();
  for (const ExploredSentence* own : kept) one["models"].push_back(tokens_and_weights(*own));
  return one;
}

/// Returns the sentence that a model has kept of a line; null if it has kept none.
const ExploredSentence* kept_of(const ModelAnalysis& model, int64_t line) {
  const std::vector<ExploredSentence>& kept = model.explored.kept;
  const auto at = std::lower_bound(kept.begin(), kept.end(), line, [](const auto& one, int64_t wanted) { return one.line < wanted; });
  return at != kept.end() && at->line == line ? &*at : nullptr;
}

bool has_omitted(const ModelAnalysis& model, int64_t line) {
  return std::binary_search(model.explored.omitted.begin(), model.explored.omitted.end(), line);
}

/// Returns the lines that a model was to show.
std::vector<int64_t> lines_of(const ModelAnalysis& model) {
  std::vector<int64_t> lines = model.explored.omitted;
  for (const ExploredSentence& one : model.explored.kept) lines.push_back(one.line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Returns the sentence that each model has kept of a line, null where it had no room. Empty if some model leaves the line out.
std::vector<const ExploredSentence*> kept_by_all(const std::vector<ModelAnalysis>& models, int64_t line) {
  std::vector<const ExploredSentence*> kept;
  for (const ModelAnalysis& model : models) {
    kept.push_back(kept_of(model, line));
    if (kept.back() == nullptr && !has_omitted(model, line)) return {};
  }
  return kept;
}

/// Returns the sentences that every model was to show, as far as they fit into the page; adds the number of others to `omitted`.
ordered_json explored_sentences(const std::vector<ModelAnalysis>& models, size_t& omitted) {
  ordered_json sentences = ordered_json::array();
  size_t room = kMostWeightBytes;
  for (const int64_t line : lines_of(models.front())) {
    const std::vector<const ExploredSentence*> kept = kept_by_all(models, line);
    if (kept.empty()) continue;
    const bool is_whole = std::find(kept.begin(), kept.end(), nullptr) == kept.end();
    ordered_json one = is_whole ? explored_json(kept) : ordered_json();
    const size_t taken = dumped(one).size();
    if (is_whole && taken <= room) {
      room -= taken;
      sentences.push_back(std::move(one));
    } else {
      ++omitted;
    }
  }
  return sentences;
}

std::string page_data(const std::vector<ModelAnalysis>& models, const ordered_json& analysis) {
  size_t omitted = 0;
  ordered_json data = {{"analysis", analysis}};
  data["sentences"] = explored_sentences(models, omitted);
  data["omitted"] = omitted;
  return dumped(data);
}

}  // namespace

std::string report_html(const std::vector<ModelAnalysis>& models, const ordered_json& analysis) {
  const auto part_of = [&](const std::string& name) { return name == "DATA" ? page_data(models, analysis) : report_part(name); };
  const std::string page = report_part("PAGE");
  std::string html;
  for (size_t begin = 0; begin < page.size();) {
    const size_t open = std::min(page.find("{{", begin), page.size()), close = page.find("}}", open);
    html += page.substr(begin, open - begin);
    if (open == page.size()) break;
    html += part_of(page.substr(open + 2, close - open - 2));
    begin = close + 2;
  }
  return html;
}

}  // namespace lacuna

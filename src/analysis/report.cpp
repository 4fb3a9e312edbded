#include "analysis/report.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostWeightBytes = 2700000;  // of the page: its charts and scripts take less than the rest of 3 MB

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

/// Nothing if it would take more than so many bytes: then it stops there.
std::optional<std::string> deflated(const std::vector<uint8_t>& bytes, size_t most) {
  constexpr int kLevel = 6;  // the highest takes several times as long and saves a few percent
  uLongf size = std::min<uLongf>(compressBound(bytes.size()), most);
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes.data(), bytes.size(), kLevel);
  if (result == Z_BUF_ERROR) return {};
  if (result != Z_OK) throw MachineError("zlib could not pack the report's weights; this is a fault of the program");
  packed.resize(size);
  return packed;
}

/// As the page holds it: JSON that can't end a script element.
std::string dumped(const ordered_json& json) {
  std::string text;
  for (const char c : json_text(json)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

/// Nothing if the weights do not fit into so many bytes.
std::optional<ordered_json> tokens_and_weights(const ExploredSentence& sentence, size_t room) {
  std::vector<uint8_t> levels;
  std::vector<float> scales;
  for (const ExploredSentence::Map& map : sentence.maps) {
    levels.insert(levels.end(), map.levels.begin(), map.levels.end());
    scales.push_back(map.scale);
  }
  ordered_json json = {{"src", sentence.src},
                       {"tgt", sentence.tgt},
                       {"src_words", sentence.src_words},
                       {"tgt_words", sentence.tgt_words},
                       {"scales", scales}};
  if (!sentence.joiner.empty()) json["joiner"] = sentence.joiner;
  const size_t taken = dumped(json).size();
  if (taken > room) return {};
  const std::optional<std::string> packed = deflated(levels, (room - taken) / 4 * 3);  // four digits for three bytes
  if (!packed) return {};
  json["weights"] = base64(*packed);
  return json;
}

/// One sentence as every model has kept it; nothing if it does not fit into so many bytes.
std::optional<ordered_json> explored_json(const std::vector<const ExploredSentence*>& kept, size_t room) {
  if (std::any_of(kept.begin(), kept.end(), [](const ExploredSentence* own) { return own->is_too_large(); })) return {};
  const ExploredSentence& first = *kept.front();
  ordered_json one = {{"line", first.line}, {"src_text", first.src_text}, {"tgt_text", first.tgt_text}};
  one["models"] = ordered_json::array();
  size_t taken = dumped(one).size();
  for (const ExploredSentence* own : kept) {
    if (taken > room) return {};
    std::optional<ordered_json> more = tokens_and_weights(*own, room - taken);
    if (!more) return {};
    taken += dumped(*more).size() + 1;
    one["models"].push_back(std::move(*more));
  }
  return taken > room ? std::nullopt : std::optional(one);
}

/// What every model has kept of a sentence; nothing if one has not kept it.
std::vector<const ExploredSentence*> kept_by_all(const std::vector<ModelAnalysis>& models, int64_t line) {
  std::vector<const ExploredSentence*> kept;
  for (const ModelAnalysis& model : models) {
    const auto same = std::find_if(model.explored.begin(), model.explored.end(), [&](const auto& own) { return own.line == line; });
    if (same == model.explored.end()) return {};  // its vocabulary found nothing in the line, or too much
    kept.push_back(&*same);
  }
  return kept;
}

/// Sentences that every model has kept, with the weights of each, as far as they fit into the page; `omitted` are those that do not.
ordered_json explored_sentences(const std::vector<ModelAnalysis>& models, size_t& omitted) {
  ordered_json sentences = ordered_json::array();
  size_t room = kMostWeightBytes;
  for (const ExploredSentence& first : models.front().explored) {
    const std::vector<const ExploredSentence*> kept = kept_by_all(models, first.line);
    if (kept.empty()) continue;
    std::optional<ordered_json> one = explored_json(kept, room);
    if (!one) {
      ++omitted;
      continue;
    }
    room -= std::min(room, dumped(*one).size());
    sentences.push_back(std::move(*one));
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

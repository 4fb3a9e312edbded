#include "analysis/report.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/analysis_tables.h"
#include "base/error.h"

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

std::string deflated(const std::vector<uint8_t>& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes.data(), bytes.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw MachineError("zlib could not pack the report's weights; this is a fault of the program");
  packed.resize(size);
  return packed;
}

ordered_json tokens_and_weights(const ExploredSentence& sentence) {
  std::vector<uint8_t> levels;
  std::vector<float> scales;
  for (const ExploredSentence::Map& map : sentence.maps) {
    levels.insert(levels.end(), map.levels.begin(), map.levels.end());
    scales.push_back(map.scale);
  }
  return {{"src", sentence.src},
          {"tgt", sentence.tgt},
          {"src_words", sentence.src_words},
          {"tgt_words", sentence.tgt_words},
          {"scales", scales},
          {"weights", base64(deflated(levels))}};
}

/// Sentences that every model has kept, with the weights of each, as far as they fit into the page; `omitted` are those that do not.
ordered_json explored_sentences(const std::vector<ModelAnalysis>& models, size_t& omitted) {
  ordered_json sentences = ordered_json::array();
  size_t bytes = 0;
  for (const ExploredSentence& first : models.front().explored) {
    size_t more = 0;
    ordered_json one = {{"line", first.line}, {"src_text", first.src_text}, {"tgt_text", first.tgt_text}};
    one["models"] = ordered_json::array();
    for (const ModelAnalysis& model : models) {
      const auto same = std::find_if(model.explored.begin(), model.explored.end(), [&](const auto& own) { return own.line == first.line; });
      if (same == model.explored.end()) break;  // its vocabulary found nothing in the line
      one["models"].push_back(tokens_and_weights(*same));
      more += one["models"].back().dump(-1, ' ', false, ordered_json::error_handler_t::replace).size();
    }
    if (one["models"].size() != models.size()) continue;
    if (bytes + more > kMostWeightBytes) {
      ++omitted;
      continue;
    }
    bytes += more;
    sentences.push_back(std::move(one));
  }
  return sentences;
}

/// The data of the page: JSON that can't end a script element.
std::string page_data(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  size_t omitted = 0;
  ordered_json data = {{"analysis", ordered_json::parse(analysis_json(models, settings))}};
  data["sentences"] = explored_sentences(models, omitted);
  data["omitted"] = omitted;
  std::string text;
  for (const char c : data.dump(-1, ' ', false, ordered_json::error_handler_t::replace))
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

std::string report_html(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  const auto part_of = [&](const std::string& name) { return name == "DATA" ? page_data(models, settings) : report_part(name); };
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

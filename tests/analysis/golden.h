#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/weight_gatherer.h"

namespace lacuna {

using nlohmann::json;

/// The expected values, computed with NumPy by tests/golden/make_analysis_golden.py.
inline const json& analysis_golden() {
  static const json golden = [] {
    std::ifstream file(LACUNA_SOURCE_DIR "/tests/golden/analysis.json");
    return json::parse(file);
  }();
  return golden;
}

/// One row, NaN for null.
inline std::vector<float> row_of(const json& row) {
  std::vector<float> weights;
  for (const json& weight : row) weights.push_back(weight.is_null() ? NAN : weight.get<float>());
  return weights;
}

/// One sentence's weights [heads][queries][keys] as the probe would have gathered them.
class SentenceWeights {
 public:
  SentenceWeights(const json& heads, int layer, AttentionSite site)
      : layer_(layer),
        site_(site),
        num_heads_(static_cast<int64_t>(heads.size())),
        weights_(RaggedShape({0, static_cast<int32_t>(heads[0].size())}), RaggedShape({0, static_cast<int32_t>(heads[0][0].size())}),
                 num_heads_) {
    for (size_t h = 0; h < heads.size(); ++h)
      for (size_t q = 0; q < heads[h].size(); ++q) set_row(static_cast<int64_t>(h), static_cast<int64_t>(q), row_of(heads[h][q]));
  }

  CallWeights call() const { return {layer_, site_, 1, num_heads_, weights_, nullptr, nullptr}; }

 private:
  void set_row(int64_t head, int64_t query, const std::vector<float>& row) {
    std::vector<float> visible;
    std::vector<int32_t> positions;
    for (size_t j = 0; j < row.size(); ++j) {
      if (std::isnan(row[j])) continue;
      visible.push_back(row[j]);
      positions.push_back(static_cast<int32_t>(j));
    }
    weights_.set_row(0, head, query, visible, positions);
  }

  int layer_;
  AttentionSite site_;
  int64_t num_heads_;
  SiteWeights weights_;
};

}  // namespace lacuna

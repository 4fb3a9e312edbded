#include <algorithm>
#include <map>
#include <mutex>

#include "attention_calls.h"

// What attention() shows a probe: the weights of every row.
namespace lacuna::contract {
namespace {

/// Keeps every row it sees, weights by key.
class Rows : public AttentionProbe {
 public:
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(layer, 2);
    EXPECT_EQ(site, AttentionSite::kCross);
    ASSERT_EQ(weights.size(), key_positions.size());
    auto& row = rows[{head, sentence, query}];
    EXPECT_TRUE(row.empty()) << "seen twice";
    for (size_t j = 0; j < weights.size(); ++j) row[key_positions[j]] = weights[j];
  }
  std::map<std::tuple<int, int64_t, int64_t>, std::map<int32_t, float>> rows;

 private:
  std::mutex mutex_;
};

void expect_near(const Rows& found, const Rows& expected) {
  ASSERT_EQ(found.rows.size(), expected.rows.size());
  for (const auto& [place, weights] : expected.rows) {
    const auto& row = found.rows.at(place);
    ASSERT_EQ(row.size(), weights.size());
    for (const auto& [key, weight] : weights) ASSERT_NEAR(row.at(key), weight, 1e-5) << "key " << key;
  }
}

TEST_P(AttentionCore, ShowsAProbeTheWeightsBeforeDropout) {
  const Inputs inputs({1, 5}, {4, 90}, 2, 8);
  for (const Variant& variant : variants()) {
    Rows core, reference;
    const auto type = type_of(variant);
    AttentionCall call = inputs.call(type, at::kFloat);
    call.layer = 2;
    call.site = AttentionSite::kCross;
    call.dropout = 0.5;
    ForwardContext context = training();
    context.probe = &core;
    attention(call, context);
    context.probe = &reference;
    attention_reference(call, context);
    SCOPED_TRACE(variant.name());
    ASSERT_EQ(core.rows.size(), 12u);
    expect_near(core, reference);
  }
}

TEST(AttentionCore, ShowsAProbeTheKeysOfThePattern) {
  Inputs inputs({30, 17}, {33, 17}, 2, 8);
  inputs.first_position = {3, 0};
  for (const std::string& pattern : all_patterns()) {
    SCOPED_TRACE(pattern);
    Rows core, reference;
    const auto type = type_of(variant("softmax", ""), pattern, 2);
    AttentionCall call = inputs.call(type, at::kFloat, /*causal=*/true);
    call.layer = 2;
    call.site = AttentionSite::kCross;
    ForwardContext context = training();
    context.probe = &core;
    attention(call, context);
    context.probe = &reference;
    attention_reference(call, context);
    expect_near(core, reference);
    ASSERT_EQ(core.rows.size(), 94u);
    for (const auto& [place, row] : core.rows) {
      const auto query = static_cast<int32_t>(std::get<2>(place));
      for (int32_t j = 0; j < 33; ++j)
        EXPECT_EQ(row.contains(j), j <= query && sees(*type, std::get<0>(place), query, j)) << "query " << query << ", key " << j;
    }
  }
}

Row numbers_in_bf16(const Variant& variant) {
  Row numbers;
  for (const double number : variant.numbers) numbers.push_back(to_bf16(number));
  return numbers;
}

// Weights are worked out in float; a GPU rounds them to bf16 afterwards.
TEST_P(AttentionCore, GivesTensorsOfBf16TheWeightsOfTheirScoresInDouble) {
  constexpr double kTolerance = 1e-5;  // as kFloatContext
  for (const Variant& variant : variants()) {
    const auto type = type_of(variant);
    for (const int n : {1, 2, 4000}) {
      for (const Row& scores : hard_bf16_rows(n)) {
        SCOPED_TRACE(variant.name() + ", " + std::to_string(n) + " keys");
        Inputs inputs({1}, {n}, 1, 1);
        inputs.q.fill_(1);
        inputs.k.copy_(at::tensor(scores, at::kDouble).view({n, 1, 1}));
        AttentionCall call = inputs.call(type, at::kBFloat16);
        call.layer = 2;
        call.site = AttentionSite::kCross;
        Rows seen;
        ForwardContext context = training();
        context.probe = &seen;
        const Outcome outcome = outcome_of(call, context, inputs.context_gradient);
        for (const Tensor& one : outcome.all) EXPECT_TRUE(one.isfinite().all().item<bool>());
        if (variant.entry->info.uses_positions) continue;  // weights_of puts the query elsewhere
        const Row expected = weights_of(variant, Engine::kPlainDouble, scores, numbers_in_bf16(variant));
        const auto& weights = seen.rows.begin()->second;
        for (int j = 0; j < n; ++j) {
          const double exact = expected[static_cast<size_t>(j)];
          ASSERT_NEAR(weights.at(j), exact, kTolerance * std::max(1.0, std::abs(exact))) << "key " << j;
          if (exact == 0) {
            ASSERT_EQ(weights.at(j), 0) << "key " << j;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::contract

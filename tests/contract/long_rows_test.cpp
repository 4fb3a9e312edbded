#include <algorithm>
#include <limits>

#include "attention/gpu/block_schedule.h"
#include "attention/gpu/run.h"
#include "attention_calls.h"
#include "emulation.h"

// The GPU's kernels for long rows: rows of more than 128 keys. In float, one lane holds everything, as in the contract of attention(); in
// bf16, two warps of 32 lanes share the keys.
namespace lacuna::contract {
namespace {

struct LongCase {
  std::vector<int32_t> queries, keys;
  int64_t d_head;
  const char* pattern = "full";
  bool causal = false;
  double dropout = 0;
};

std::string name_of(const LongCase& one) {
  return std::to_string(one.keys[0]) + " keys, " + std::to_string(one.d_head) + " columns, " + one.pattern +
         (one.causal ? ", causal" : "") + (one.dropout > 0 ? ", dropout" : "");
}

Outcome outcome_of_case(const LongCase& one, const Variant& variant, at::ScalarType dtype, double spread = 1) {
  Inputs inputs(one.queries, one.keys, 2, one.d_head, spread);
  for (Tensor* rows : {&inputs.q, &inputs.k, &inputs.v, &inputs.context_gradient}) *rows = rows->to(at::kBFloat16).to(at::kDouble);
  const auto type = type_of(variant, one.pattern, 2);
  AttentionCall call = inputs.call(type, dtype, one.causal);
  call.dropout = one.dropout;
  if (dtype == at::kBFloat16)
    for (Tensor& number : call.numbers) number = Inputs::leaf(number, at::kFloat);  // as a model's are
  return outcome_of(call, training(), inputs.context_gradient, /*reference=*/dtype == at::kDouble);
}

class LongRows : public PerType {};
INSTANTIATE_FOR_EACH_TYPE(LongRows);

// Sentences that fill no group or tile, heads that fill no tile and more than 64 columns, more keys than queries and fewer, rows that see
// no key, and a short sentence beside them.
TEST_P(LongRows, EqualTheReferenceInFloat) {
  const LongCase cases[] = {{{130, 7}, {130, 7}, 20, "full", true},
                            {{200, 33}, {300, 129}, 8, "full", false, 0.1},
                            {{290}, {290}, 72, "{type: local, window: 40}", true, 0.1},
                            {{190}, {140}, 8, "{type: local, window: 9}"},
                            {{5}, {1100}, 16}};
  for (const Variant& variant : variants()) {
    for (const LongCase& one : cases) {
      SCOPED_TRACE(variant.name() + ", " + name_of(one));
      if (variant.entry->info.needs_distance && one.queries != one.keys) continue;
      const Outcome expected = outcome_of_case(one, variant, at::kDouble);
      const Emulation emulation({cuda::all_emulated_kernels(), shared_bytes});
      expect_near(outcome_of_case(one, variant, at::kFloat), expected, kFloatContext);
    }
  }
}

// Scores far apart: in most blocks of queries and keys, sparse types weigh nothing.
TEST_P(LongRows, EqualTheReferenceWhereBlocksHaveNoWeight) {
  const LongCase one = {{200}, {400}, 8};
  for (const Variant& variant : variants()) {
    if (variant.entry->info.needs_distance) continue;
    SCOPED_TRACE(variant.name());
    constexpr double kSpread = 10, kRounding = 1e-4;  // of scores that are as much larger
    const Outcome expected = outcome_of_case(one, variant, at::kDouble, kSpread);
    const Emulation emulation({cuda::all_emulated_kernels(), shared_bytes});
    expect_near(outcome_of_case(one, variant, at::kFloat, kSpread), expected, kRounding);
  }
}

TEST_P(LongRows, EqualTheReferenceOnWarpsOf32Lanes) {
  const LongCase cases[] = {{{40, 3}, {200, 3}, 20, "full", false, 0.1}, {{150}, {150}, 72, "{type: local, window: 50}", true}};
  for (const Variant& variant : variants()) {
    if (!is_smooth(variant)) continue;
    for (const LongCase& one : cases) {
      SCOPED_TRACE(variant.name() + ", " + name_of(one));
      if (variant.entry->info.needs_distance && one.queries != one.keys) continue;
      const Outcome expected = outcome_of_case(one, variant, at::kDouble);
      const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
      const Outcome found = outcome_of_case(one, variant, at::kBFloat16);
      expect_near(found, expected, kBf16Context);
      expect_same_bits(outcome_of_case(one, variant, at::kBFloat16), found);
    }
  }
}

// Rows in shared memory, and longer ones that lie in the device's.
TEST_P(LongRows, EqualTheReferenceOnAGpu) {
  const std::vector<Engine> engines = call_engines();
  if (std::find(engines.begin(), engines.end(), Engine::kGpu) == engines.end()) GTEST_SKIP() << "no GPU in this build or machine";
  const LongCase cases[] = {
      {{500, 150}, {500, 150}, 64, "full", true, 0.1}, {{1100}, {1100}, 40}, {{700}, {700}, 72, "{type: local, window: 200}", false, 0.1}};
  for (const Variant& variant : variants()) {
    if (!is_smooth(variant)) continue;
    for (const LongCase& one : cases) {
      SCOPED_TRACE(variant.name() + ", " + name_of(one));
      const Outcome expected = outcome_of_case(one, variant, at::kDouble);
      use(Engine::kGpu);
      const Outcome found = outcome_of_case(one, variant, at::kBFloat16);
      expect_near(found, expected, kBf16Context);
      expect_same_bits(outcome_of_case(one, variant, at::kBFloat16), found);
    }
  }
}

// Where rows lie in the device's memory, for some tiles at a time.
TEST_P(LongRows, HaveTheSameBitsWhereverTheyLie) {
  const LongCase one = {{150, 20}, {150, 300}, 8, "full", false, 0.1};
  for (const Variant& variant : variants()) {
    if (variant.entry->info.needs_distance) continue;
    if (variant.entry->needs_scores(type_of(variant)->options())) continue;  // the kernels for tiles take it
    SCOPED_TRACE(variant.name());
    Outcome expected;
    {
      const Emulation emulation({cuda::all_emulated_kernels(), shared_bytes});
      expected = outcome_of_case(one, variant, at::kFloat);
    }
    for (const int64_t row_memory : {cuda::kRowMemory, int64_t{200000}}) {
      const Emulation emulation({cuda::all_emulated_kernels(), shared_bytes<82>, /*takes_short_rows=*/true, nullptr, row_memory});
      expect_same_bits(outcome_of_case(one, variant, at::kFloat), expected);
    }
  }
}

TEST_P(LongRows, HaveTheSameBitsAloneAndBesideOthers) {
  const Inputs together({140, 20, 300}, {140, 20, 300}, 1, 8);
  const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const auto type = type_of(variant);
    const auto call_on = [&](const Inputs& inputs) {
      AttentionCall call = inputs.call(type, at::kBFloat16);
      for (Tensor& number : call.numbers) number = Inputs::leaf(number, at::kFloat);
      return call;
    };
    const AttentionCall all = call_on(together);
    const Outcome expected = outcome_of(all, training(), together.context_gradient);
    for (const int64_t b : {0, 2}) {
      const Inputs alone = together.sentence(b);
      AttentionCall call = call_on(alone);
      take_numbers(call, all, together.queries->begin(b));
      const Outcome found = outcome_of(call, training(), alone.context_gradient);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_TRUE(at::equal(found.all[i], expected.all[i].narrow(0, together.queries->begin(b), together.queries->length(b))))
            << "tensor " << i << " of sentence " << b;
    }
  }
}

TEST(LongRows, GiveAQueryTheSameBitsWhereverItsTileBegins) {
  const at::NoGradGuard no_gradients;
  const auto type = type_of(variant("entmax15", ""), "{type: local, window: 70}", 2);
  AttentionCall all = Inputs({300}, {300}, 2, 8).call(type, at::kBFloat16);
  all.rows_alike = true;
  const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
  const Tensor together = attention(all, {});
  for (const int32_t i : {0, 111, 299}) {
    AttentionCall one = all;
    one.q = all.q.narrow(0, i, 1);
    one.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
    one.first_position = {i};
    EXPECT_TRUE(at::equal(attention(one, {})[0], together[i])) << "query " << i;
  }
}

// What is never read cannot spoil anything.
TEST(LongRows, LeaveOutBlocksWithoutWeight) {
  const Inputs inputs({40}, {320}, 1, 16);
  const auto type = type_of(variant("sparsemax", ""));
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    AttentionCall call = inputs.call(type, dtype);
    {
      const at::NoGradGuard no_gradients;
      call.q.fill_(1);
      call.k.narrow(0, 64, 128).fill_(-9);
      call.v.narrow(0, 64, 128).fill_(std::numeric_limits<float>::quiet_NaN());
    }
    const Emulation emulation({dtype == at::kFloat ? cuda::all_emulated_kernels() : cuda::all_threaded_kernels(), shared_bytes});
    const Outcome found = outcome_of(call, training(), inputs.context_gradient);
    for (const Tensor& tensor : found.all) EXPECT_TRUE(at::isfinite(tensor).all().item<bool>());
    EXPECT_TRUE(found.k().narrow(0, 64, 128).eq(0).all().item<bool>());
    EXPECT_TRUE(found.v().narrow(0, 64, 128).eq(0).all().item<bool>());
  }
}

// --- which sentences they take ---

cuda::MemoryRules rules_of_long_rows(bool wants_gradients) {
  return {.d_head = 64,
          .needs_scores = false,
          .uses_positions = false,
          .in_bf16 = true,
          .wants_gradients = wants_gradients,
          .limit = shared_bytes<163>(),
          .has_short_rows = true,
          .has_long_rows = true};
}

cuda::ScheduleLists lists_of(const std::vector<int32_t>& lengths, const cuda::MemoryRules& rules, const char* pattern = "full",
                             bool shares_keys = false) {
  const auto type = type_of(variant("softmax", ""), pattern);
  Inputs inputs(lengths, lengths, 1, 4);
  if (shares_keys) {
    KeyRange keys = *inputs.keys;
    keys.begin.back() = keys.begin.front();
    inputs.keys = std::make_shared<KeyRange>(keys);
  }
  return cuda::make_schedules(inputs.call(type, at::kFloat), rules).front();
}

TEST(LongSentences, AreThoseThatAreNotShort) {
  for (const bool wants_gradients : {false, true}) {
    const cuda::ScheduleLists lists = lists_of({300, 5, 129, 128}, rules_of_long_rows(wants_gradients));
    EXPECT_EQ(lists.short_sentences.size(), 2u);
    ASSERT_EQ(lists.long_sentences.size(), 2u);
    EXPECT_EQ(lists.long_sentences[0].keys, 300);
    EXPECT_TRUE(lists.tasks.empty());
    EXPECT_TRUE(lists.writes_every_key);
  }
}

TEST(LongSentences, AreNoneWhereAKernelWouldLackSomething) {
  EXPECT_TRUE(
      lists_of({300, 300}, rules_of_long_rows(true), "full", /*shares_keys=*/true).long_sentences.empty());  // two would write gradients
  EXPECT_EQ(lists_of({300, 300}, rules_of_long_rows(false), "full", /*shares_keys=*/true).long_sentences.size(), 2u);
  EXPECT_TRUE(lists_of({300}, rules_of_long_rows(false), "{type: strided, window: 2, stride: 3}").long_sentences.empty());
  cuda::MemoryRules rules = rules_of_long_rows(true);
  rules.d_head = 512;  // 64 keys and values are more than a block's memory
  EXPECT_TRUE(lists_of({300}, rules).long_sentences.empty());
}

TEST(LongSentences, HaveALaunchForEachWidth) {
  const cuda::ScheduleLists lists = lists_of({4000, 200, 500, 230}, rules_of_long_rows(true));
  ASSERT_EQ(lists.long_launches.size(), 3u);
  int launched = 0;
  for (const cuda::LongLaunch& launch : lists.long_launches) {
    EXPECT_EQ(launch.first, launched);
    launched += launch.count;
    EXPECT_LE(launch.backward_bytes, shared_bytes<163>());
    for (int i = launch.first; i < launched; ++i) {
      const cuda::LongTile& tile = lists.long_tiles[static_cast<size_t>(i)];
      EXPECT_LE(tile.end - tile.begin, launch.groups);
    }
  }
  EXPECT_EQ(launched, static_cast<int>(lists.long_tiles.size()));
  EXPECT_EQ(lists.long_launches[1].backward_row_bytes, 0);
  EXPECT_GE(lists.long_launches[2].backward_row_bytes, 2 * 16 * 4000 * 4);  // weights and gradients of 16 rows
}

TEST(LongSentences, LetEachBlockOfKeysSeeItsQueries) {
  const cuda::ScheduleLists lists = lists_of({300}, rules_of_long_rows(true), "{type: local, window: 20}");
  ASSERT_EQ(lists.long_keys.size(), 5u);
  for (const cuda::LongKeys& keys : lists.long_keys) {
    for (int32_t tile = 0; tile < 19; ++tile) {
      const bool sees_some = 16 * tile + 15 + 20 >= keys.first && 16 * tile - 20 < keys.first + cuda::kLongKeys;
      EXPECT_EQ(tile >= keys.begin && tile < keys.end, sees_some) << "keys from " << keys.first << ", tile " << tile;
    }
  }
}

}  // namespace
}  // namespace lacuna::contract

#include <functional>
#include <set>

#include "attention/gpu/block_schedule.h"
#include "attention/gpu/factors.h"
#include "attention/gpu/short_rows_memory.h"
#include "attention_calls.h"
#include "emulation.h"

// What the contract of attention() does not ask of the GPU's kernels for short rows: the 32 lanes of a warp, tensor cores, and which
// sentences they take. In the contract, one lane holds everything.
namespace lacuna::contract {
namespace {

using Warp = cuda::EmulatedBlock<32, 1>;
using Layout = cuda::LaneLayout<Warp>;

// --- who holds what ---

TEST(LaneLayout, GivesEachElementToOneLane) {
  constexpr int kColumns = 64;
  std::set<std::pair<int, int>> held;
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < Layout::kRows; ++r)
      for (int i = 0; i < Layout::share(kColumns); ++i) held.insert({Layout::row(lane, r), Layout::column(lane, i)});
  EXPECT_EQ(held.size(), size_t{cuda::kTile * kColumns});
  EXPECT_EQ(*held.rbegin(), std::pair(cuda::kTile - 1, kColumns - 1));
}

// The manual of PTX, "Matrix Fragments for mma.m16n8k16": c0 and c1 lie in row groupID = lane / 4, c2 and c3 eight rows below, in columns
// 2 (lane % 4) and the next.
TEST(LaneLayout, IsThatOfTheSumsOfTensorCores) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 2; ++r) EXPECT_EQ(Layout::row(lane, r), lane / 4 + 8 * r);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(Layout::column(lane, i), 8 * (i / 2) + 2 * (lane % 4) + i % 2);
  }
}

TEST(LaneLayout, LetsOneLaneHoldEverything) {
  using Whole = cuda::LaneLayout<cuda::EmulatedBlock<1, 1>>;
  static_assert(Whole::kRows == cuda::kTile && Whole::share(64) == 64);
  EXPECT_EQ(Whole::row(0, 5), 5);
  EXPECT_EQ(Whole::column(0, 37), 37);
}

/// A warp of lanes that only write down the addresses that they name for a factor.
struct AddressesOnly {
  static constexpr int kLanes = 32;
  int lane_;
  mutable const cuda::Bf16* named = nullptr;
  mutable bool is_transposed = false;
  int lane() const { return lane_; }
  void load_parts(const cuda::Bf16* row, uint32_t (&)[4]) const { named = row; }
  void load_parts_transposed(const cuda::Bf16* row, uint32_t (&)[4]) const {
    named = row;
    is_transposed = true;
  }
};
using Addresses = cuda::Factors<cuda::Bf16, AddressesOnly>;

/// The rows of 8 numbers that the lanes name: [row, column of the first].
template <class F>
std::vector<std::pair<int, int>> addresses_of(F load, int stride, bool& is_transposed) {
  const std::vector<cuda::Bf16> memory(static_cast<size_t>(cuda::kTile * stride), cuda::Bf16(0.f));
  std::vector<std::pair<int, int>> all;
  for (int lane = 0; lane < 32; ++lane) {
    const AddressesOnly block = {.lane_ = lane};
    load(block, memory.data());
    const auto place = static_cast<int>(block.named - memory.data());
    all.emplace_back(place / stride, place % stride);
    is_transposed = block.is_transposed;
  }
  return all;
}

// Lanes 8 p to 8 p + 7 name the rows of part p. In a left factor, parts 0 and 1 are rows 0 and 8 of the first eight k, in a right one the
// two halves of k in the first eight columns (the manual of PTX, a0 to a3 and b0, b1).
TEST(Factors, NameTheRowsOfEachPart) {
  constexpr int kStride = 72;
  struct Case {
    std::vector<std::pair<int, int>> begins;  // of each part: row and column in memory
    bool is_transposed;
    std::function<void(const AddressesOnly&, const cuda::Bf16*)> load;
  };
  const std::vector<std::pair<int, int>> down = {{0, 0}, {8, 0}, {0, 8}, {8, 8}}, across = {{0, 0}, {0, 8}, {8, 0}, {8, 8}};
  const std::vector<Case> cases = {
      {down, false, [](const auto& block, const auto* from) { Addresses::left(block, from, kStride); }},
      {across, true, [](const auto& block, const auto* from) { Addresses::left_transposed(block, from, kStride); }},
      {down, true, [](const auto& block, const auto* from) { Addresses::right(block, from, kStride); }},
      {across, false, [](const auto& block, const auto* from) { Addresses::right_transposed(block, from, kStride); }}};
  for (const Case& one : cases) {
    bool is_transposed = false;
    const auto named = addresses_of(one.load, kStride, is_transposed);
    EXPECT_EQ(is_transposed, one.is_transposed);
    for (size_t lane = 0; lane < 32; ++lane) {
      const auto& [row, column] = one.begins[lane / 8];
      EXPECT_EQ(named[lane], std::pair(row + static_cast<int>(lane % 8), column)) << "lane " << lane;
    }
  }
}

// Shared memory has 32 banks of 4 bytes, so eight rows of 16 bytes are read at once if each begins in four other banks.
TEST(Factors, ReadRowsFromBanksOfTheirOwn) {
  for (int width = cuda::kTile; width <= 256; width += cuda::kTile) {
    std::set<int> banks;
    for (int row = 0; row < 8; ++row) banks.insert(row * cuda::row_stride<cuda::Bf16>(width) * 2 / 16 % 8);
    EXPECT_EQ(banks.size(), 8u) << width;
  }
}

// --- whole calls by warps of 32 lanes ---

struct ShortCase {
  std::vector<int32_t> queries, keys;
  int64_t d_head;
  const char* pattern;
  bool causal;
};

Outcome outcome_of_case(const ShortCase& one, const Variant& variant, at::ScalarType dtype) {
  Inputs inputs(one.queries, one.keys, 2, one.d_head);
  for (Tensor* rows : {&inputs.q, &inputs.k, &inputs.v, &inputs.context_gradient}) *rows = rows->to(at::kBFloat16).to(at::kDouble);
  const auto type = type_of(variant, one.pattern, 2);
  AttentionCall call = inputs.call(type, dtype, one.causal);
  call.dropout = 0.1;
  if (dtype == at::kBFloat16)
    for (Tensor& number : call.numbers) number = Inputs::leaf(number, at::kFloat);
  return outcome_of(call, training(), inputs.context_gradient, /*reference=*/dtype == at::kDouble);
}

class ShortRows : public PerType {};
INSTANTIATE_FOR_EACH_TYPE(ShortRows);

// Rows of every width, heads that fill no tile and more than 64 columns, sentences without keys and without queries, more tiles than warps.
TEST_P(ShortRows, EqualTheReferenceOnWarpsOf32Lanes) {
  const ShortCase cases[] = {{{1, 19, 0, 3}, {1, 19, 4, 0}, 16, "full", true},
                             {{37, 2}, {37, 60}, 20, "full", false},
                             {{40}, {40}, 72, "{type: strided, window: 2, stride: 3}", true},
                             {{5}, {100}, 8, "full", false}};
  for (const Variant& variant : variants()) {
    if (!is_smooth(variant)) continue;
    for (const ShortCase& one : cases) {
      SCOPED_TRACE(variant.name() + ", " + std::to_string(one.d_head) + " columns");
      const Outcome expected = outcome_of_case(one, variant, at::kDouble);
      const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
      const Outcome found = outcome_of_case(one, variant, at::kBFloat16);
      expect_near(found, expected, kBf16Context);
      expect_same_bits(outcome_of_case(one, variant, at::kBFloat16), found);
    }
  }
}

// A row's bits do not depend on how wide the kernel is: neither on what else is in the batch.
TEST_P(ShortRows, HaveTheSameBitsAloneAndBesideSentencesOfEveryWidth) {
  const Inputs together({30, 60, 100, 200}, {30, 60, 100, 200}, 1, 8);
  const Emulation emulation({cuda::all_emulated_kernels(), shared_bytes});
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const auto type = type_of(variant);
    const AttentionCall all = together.call(type, at::kFloat);
    const Outcome expected = outcome_of(all, training(), together.context_gradient);
    for (int64_t b = 0; b < 4; ++b) {
      const Inputs alone = together.sentence(b);
      AttentionCall call = alone.call(type, at::kFloat);
      take_numbers(call, all, together.queries->begin(b));
      const Outcome found = outcome_of(call, training(), alone.context_gradient);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_TRUE(at::equal(found.all[i], expected.all[i].narrow(0, together.queries->begin(b), together.queries->length(b))))
            << "tensor " << i << " of sentence " << b;
    }
  }
}

// --- which sentences they take ---

cuda::MemoryRules rules_of_short_rows(bool wants_gradients) {
  return {.d_head = 64,
          .needs_scores = false,
          .uses_positions = false,
          .in_bf16 = true,
          .wants_gradients = wants_gradients,
          .limit = shared_bytes(),
          .has_short_rows = true};
}

/// The lengths of the sentences that are taken, of self-attention.
std::multiset<int32_t> taken(const std::vector<int32_t>& lengths, const cuda::MemoryRules& rules, bool shares_keys = false) {
  const auto type = type_of(variant("softmax", ""));
  Inputs inputs(lengths, lengths, 1, 64);
  if (shares_keys) {
    KeyRange keys = *inputs.keys;
    keys.begin.back() = keys.begin.front();
    inputs.keys = std::make_shared<KeyRange>(keys);
  }
  const cuda::ScheduleLists lists = cuda::make_schedules(inputs.call(type, at::kFloat), rules).front();
  std::multiset<int32_t> found;
  for (const cuda::ShortSentence& sentence : lists.short_sentences) found.insert(sentence.keys);
  int launched = 0;
  for (const cuda::ShortLaunch& launch : lists.short_launches) {
    EXPECT_EQ(launch.first, launched);
    launched += launch.count;
    for (int i = launch.first; i < launched; ++i) EXPECT_LE(lists.short_sentences[static_cast<size_t>(i)].keys, launch.width);
    EXPECT_LE(rules.wants_gradients ? launch.backward_bytes : launch.forward_bytes, rules.limit);
  }
  EXPECT_EQ(launched, static_cast<int>(lists.short_sentences.size()));
  EXPECT_EQ(lists.tasks.size() + lists.short_sentences.size(), lengths.size());
  return found;
}

TEST(ShortSentences, AreThoseOfFewKeys) {
  for (const bool wants_gradients : {false, true})
    EXPECT_EQ(taken({300, 5, 129, 128, 33, 32}, rules_of_short_rows(wants_gradients)), (std::multiset<int32_t>{5, 32, 33, 128}));
}

TEST(ShortSentences, AreNoneWhereAKernelWouldLackSomething) {
  cuda::MemoryRules rules = rules_of_short_rows(true);
  EXPECT_TRUE(taken({5, 5}, rules, /*shares_keys=*/true).empty());  // two would write the gradients of a key
  EXPECT_EQ(taken({5, 5}, rules_of_short_rows(false), /*shares_keys=*/true).size(), 2u);
  rules = rules_of_short_rows(false);
  rules.needs_scores = true;
  EXPECT_TRUE(taken({5}, rules).empty());
  rules = rules_of_short_rows(false);
  rules.has_short_rows = false;
  EXPECT_TRUE(taken({5}, rules).empty());
}

TEST(ShortSentences, FitIntoTheMemoryOfABlock) {
  cuda::MemoryRules rules = rules_of_short_rows(true);
  rules.limit = 99 << 10;
  EXPECT_EQ(taken({64, 128}, rules), (std::multiset<int32_t>{64}));
}

}  // namespace
}  // namespace lacuna::contract

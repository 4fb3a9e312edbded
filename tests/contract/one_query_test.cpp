#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

#include <numeric>

#include "attention/gpu/one_query_run.h"
#include "attention/gpu/run.h"
#include "attention_calls.h"
#include "emulation.h"

// The kernel for one query a row, emulated on the CPU, beside the reference in double.
namespace lacuna::contract {
namespace {

// Of factors that are rounded to bf16, where results are too.
constexpr double kBf16Results = 1e-2;

/// Hypotheses with so many tokens each, whose keys and values lie anywhere in a buffer of slots; or, without slots, side by side.
class Hypotheses {
 public:
  Hypotheses(const Variant& variant, const std::string& pattern, std::vector<int32_t> counts, int64_t d_head, bool has_slots = true)
      : type_(type_of(variant, pattern, kHeads)), counts_(std::move(counts)), has_slots_(has_slots) {
    at::manual_seed(7);
    const int64_t rows = std::accumulate(counts_.begin(), counts_.end(), 0) + 3, count = std::ssize(counts_);
    most_ = *std::max_element(counts_.begin(), counts_.end());
    const auto numbers = [&](int64_t size) { return at::randn({size, kHeads, d_head}, at::kDouble).to(at::kBFloat16).to(at::kDouble); };
    q_ = numbers(count);
    k_ = numbers(rows);
    v_ = numbers(rows);
    const Tensor order = has_slots ? at::randperm(rows, at::kInt) : at::arange(rows, at::kInt);
    slots_.assign(order.const_data_ptr<int32_t>(), order.const_data_ptr<int32_t>() + rows);
    if (const auto module = make_row_numbers(*type_, kHeads, 4))
      for (const RowNumber& number : module->forward(at::randn({count, 4}))) numbers_.push_back(number.values.detach());
  }

  /// [N, H, d] in double, by the reference.
  Tensor expected() const {
    AttentionCall call;
    call.q = q_;
    call.k = k_;
    call.v = v_;
    call.type = type_.get();
    call.scale = kScale;
    call.causal = has_slots_;
    std::vector<int32_t> ones(counts_.size(), 1);
    call.queries = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(ones));
    KeyRange keys = KeyRange::of(RaggedShape::of_lengths(counts_));
    keys.slots = slots_;
    call.keys = std::make_shared<const KeyRange>(keys);
    for (const int32_t n : counts_) call.first_position.push_back(n - 1);
    for (const Tensor& number : numbers_) call.numbers.push_back(number.to(at::kDouble));
    return attention_reference(call, {});
  }

  /// By the kernel. Hypothesis `alone` on its own; -1 = all.
  Tensor found(at::ScalarType dtype, int64_t alone = -1) const {
    const auto some = [&](const Tensor& rows) { return alone < 0 ? rows : rows.narrow(0, alone, 1); };
    const KeyRange keys = KeyRange::of(RaggedShape::of_lengths(counts_));
    const Tensor table = at::full({std::ssize(counts_), most_ + 2}, -1, at::kInt), newest = at::empty({std::ssize(counts_)}, at::kLong);
    for (int64_t i = 0; i < std::ssize(counts_); ++i) {
      const int32_t count = counts_[static_cast<size_t>(i)], begin = keys.begin[static_cast<size_t>(i)];
      for (int32_t j = 0; j < count; ++j) table[i][j] = slots_[static_cast<size_t>(begin + j)];
      newest[i] = slots_[static_cast<size_t>(begin + count - 1)];
    }
    cuda::OneQueryStep step;
    step.type = type_.get();
    step.scale = kScale;
    step.q = some(q_).to(dtype);
    step.k = k_.to(dtype, false, /*copy=*/true);
    step.v = v_.to(dtype, false, /*copy=*/true);
    if (has_slots_) {
      step.new_k = some(step.k.index_select(0, newest));
      step.new_v = some(step.v.index_select(0, newest));
      step.k.index_fill_(0, newest, 9);
      step.v.index_fill_(0, newest, 9);
      step.slots = some(table);
    } else {
      step.first_key = some(at::tensor(keys.begin, at::kInt));
    }
    for (const Tensor& number : numbers_) step.numbers.push_back(number.dim() == 1 ? number : some(number));
    step.num_keys = some(at::tensor(counts_, at::kInt));
    step.most_keys = alone < 0 ? most_ : counts_[static_cast<size_t>(alone)];
    const cuda::PatternTable patterns = cuda::pattern_table(*type_, kHeads, most_ + 1, at::kCPU);
    if (has_slots_) step.patterns = &patterns;
    Tensor context = cuda::run_one_query(step);
    if (has_slots_ && alone < 0) {
      EXPECT_TRUE(at::equal(step.k.index_select(0, newest), step.new_k)) << "the newest keys are in their slots";
    }
    return context;
  }

  int64_t size() const { return std::ssize(counts_); }

 private:
  static constexpr int64_t kHeads = 2;
  static constexpr double kScale = 0.5;

  std::shared_ptr<const AttentionType> type_;
  std::vector<int32_t> counts_, slots_;
  bool has_slots_;
  int64_t most_;
  Tensor q_, k_, v_;
  std::vector<Tensor> numbers_;
};

void expect_close(const Tensor& found, const Tensor& expected, double tolerance) {
  expect_near(Outcome{{found}}, Outcome{{expected}}, tolerance);
}

class OneQuery : public PerType {};
INSTANTIATE_FOR_EACH_TYPE(OneQuery);

const char* const kPatterns[] = {"full", "{type: local, window: 5}", "{type: strided, window: 2, stride: 3}", "{type: fixed, block: 4}",
                                 "{heads: [full, {type: atrous, stride: 2}]}"};

TEST_P(OneQuery, EqualsTheReference) {
  for (const Variant& variant : variants())
    for (const char* pattern : kPatterns)
      for (const int64_t d_head : {16, 7})
        for (const bool has_slots : {true, false}) {
          if (!has_slots && std::string(pattern) != "full") continue;  // patterns ask for distances
          SCOPED_TRACE(variant.name() + ", " + pattern + ", heads of " + std::to_string(d_head) + (has_slots ? ", slots" : ""));
          const Hypotheses hypotheses(variant, pattern, {5, 1, 90, 33}, d_head, has_slots);
          const Tensor expected = hypotheses.expected();
          for (const auto& kernels : {cuda::all_emulated_kernels(), cuda::all_threaded_kernels()}) {
            const Emulation emulation({kernels, shared_bytes});
            expect_close(hypotheses.found(at::kFloat), expected, kFloatContext);
            expect_close(hypotheses.found(at::kBFloat16), expected, kBf16Results);
          }
        }
}

TEST_P(OneQuery, GivesARowTheSameBitsAlone) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const Hypotheses hypotheses(variant, "full", {5, 120, 33, 1, 64}, 8);
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
      const Tensor together = hypotheses.found(dtype);
      for (int64_t i = 0; i < hypotheses.size(); ++i) EXPECT_TRUE(at::equal(hypotheses.found(dtype, i)[0], together[i])) << "row " << i;
    }
  }
}

TEST_P(OneQuery, GivesTheSameBitsWhereRowsLieInTheDevicesMemory) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const Hypotheses hypotheses(variant, "{type: strided, window: 2, stride: 3}", {150, 7, 600}, 8);
    Tensor expected;
    {
      const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes});
      expected = hypotheses.found(at::kFloat);
    }
    const Emulation emulation({cuda::all_threaded_kernels(), shared_bytes<2>, /*takes_short_rows=*/true, nullptr, /*row_memory=*/1});
    EXPECT_TRUE(at::equal(hypotheses.found(at::kFloat), expected));
  }
}

}  // namespace
}  // namespace lacuna::contract

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention_contract.h"

// The contract of every attention type, row by row: whatever is in the registry, on every engine.
namespace lacuna::contract {
namespace {

constexpr int kLengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257, 1000, 4000};

double sum_of(const Row& row) {
  return std::accumulate(row.begin(), row.end(), 0.0);
}

std::vector<bool> zeros_of(const Row& weights) {
  std::vector<bool> zeros;
  for (const double p : weights) zeros.push_back(p == 0);
  return zeros;
}

/// True where no pair of scores nor a score and a threshold is so near that a step of a finite difference could cross a kink.
bool is_smooth_around(const Variant& variant, const Row& scores, double step) {
  for (size_t i = 0; i < scores.size(); ++i) {
    for (const double by : {-step, step}) {
      Row moved = scores;
      moved[i] += by;
      const Row before = weights_of(variant, Engine::kPlainDouble, scores), after = weights_of(variant, Engine::kPlainDouble, moved);
      for (size_t j = 0; j < scores.size(); ++j)
        if ((before[j] == 0) != (after[j] == 0)) return false;
      if (std::abs(scores[i]) < step) return false;  // an activation's kink
    }
  }
  return true;
}

class AttentionRow : public PerType {
 protected:
  /// Calls check(variant, engine) for every variant of the type and every engine.
  template <class Check>
  static void for_each(Check check) {
    for (const Variant& variant : variants()) {
      for (const Engine engine : engines()) {
        SCOPED_TRACE(variant.name() + " on " + name_of(engine));
        check(variant, engine);
        if (HasFailure()) return;
      }
    }
  }
};

INSTANTIATE_FOR_EACH_TYPE(AttentionRow);

TEST_P(AttentionRow, GivesItsWorkedExamples) {
  const std::vector<types::Example> examples = variant(GetParam(), "").entry->examples();
  ASSERT_FALSE(examples.empty()) << GetParam() << " has no worked example";
  for (const types::Example& example : examples) {
    const Variant one = variant(GetParam(), example.options);
    for (const Engine engine : engines()) {
      SCOPED_TRACE(one.name() + " on " + name_of(engine));
      const Row weights = weights_of(one, engine, example.scores);
      ASSERT_EQ(weights.size(), example.weights.size());
      for (size_t j = 0; j < weights.size(); ++j) EXPECT_NEAR(weights[j], example.weights[j], kFloatWeights);
    }
  }
}

TEST_P(AttentionRow, AgreesWithAnotherAlgorithmAtEveryLength) {
  for_each([](const Variant& variant, Engine engine) {
    for (const int n : kLengths) {
      const Row scores = random_row(n, n % 2 == 0 ? 1.5 : 4, 1), expected = independent_weights(variant, scores);
      const Row weights = weights_of(variant, engine, scores);
      for (int j = 0; j < n; ++j)
        ASSERT_NEAR(weights[j], expected[j], weights_tolerance(engine) * std::max(1.0, std::abs(expected[j])))
            << "key " << j << " of " << n;
    }
  });
}

// Where a float's exponential comes near its least number, below it, and far below.
TEST(AttentionRow, SoftmaxIsExactDownToTheLeastFloat) {
  for (const Engine engine : engines()) {
    const Row scores = {0, -1e-6, -.3, -17.5, -60, -86.9, -200, -1e4, -1e30};
    const Row weights = weights_of(variant("softmax", ""), engine, scores);
    double total = 0;
    for (const double z : scores) total += std::exp(z);
    for (size_t j = 0; j < scores.size(); ++j) {
      const double expected = std::exp(scores[j]) / total;
      ASSERT_NEAR(weights[j], expected, 4e-7 * expected + 1e-37) << scores[j] << " on " << name_of(engine);
    }
  }
}

/// Rows of many lengths in one piece of memory, each with room for whole vectors and not a number more.
struct RowsInOnePiece {
  explicit RowsInOnePiece(const std::vector<int>& lengths, const std::vector<float>& numbers) : kept(lengths.size()) {
    constexpr int kVector = 16;
    std::vector<size_t> begins;
    for (const int length : lengths) {
      begins.push_back(memory.size());
      for (const double x : random_row(length, 2, 50 + static_cast<uint64_t>(length))) memory.push_back(static_cast<float>(x));
      memory.resize(begins.back() + static_cast<size_t>((length + kVector - 1) / kVector * kVector), 1e30f);
      memory.resize(memory.size() + 1, kBorder);
    }
    for (size_t r = 0; r < lengths.size(); ++r) places.push_back({memory.data() + begins[r], lengths[r], 1, numbers.data(), &kept[r]});
  }
  static constexpr float kBorder = 12345;
  std::vector<float> memory, kept;
  std::vector<types::RowPlace<float>> places;
};

TEST_P(AttentionRow, GivesEachOfManyRowsTheBitsThatItHasAloneAndLeavesWhatLiesBetween) {
  std::vector<int> lengths;
  for (int i = 0; i < 75; ++i) lengths.push_back(1 + i * 37 % 75);
  for_each([&](const Variant& variant, Engine engine) {
    if (!is_side_by_side(engine) || variant.entry->info.uses_positions) return;
    const auto functions = engine == Engine::kAvx2SideBySide ? variant.entry->avx2() : variant.entry->avx512();
    const std::vector<float> numbers(variant.numbers.begin(), variant.numbers.end());
    std::vector<float> scratch(128);
    types::RowCall<float> call = {};
    call.scratch = scratch.data();
    call.context.training = true;
    call.context.num_numbers = static_cast<int>(numbers.size());
    RowsInOnePiece together(lengths, numbers), alone(lengths, numbers);
    functions.forward_all(variant.values.get(), call, together.places.data(), static_cast<int>(lengths.size()));
    for (const types::RowPlace<float>& place : alone.places) functions.forward_all(variant.values.get(), call, &place, 1);
    for (size_t r = 0; r < lengths.size(); ++r) {
      const float *const row = together.places[r].weights, *const same = alone.places[r].weights;
      EXPECT_TRUE(std::equal(row, row + lengths[r], same)) << lengths[r] << " keys";
      EXPECT_EQ(row[(lengths[r] + 15) / 16 * 16], RowsInOnePiece::kBorder) << lengths[r] << " keys";
    }
    EXPECT_EQ(together.kept, alone.kept);
    // Where the kept numbers are known the weights are the same.
    RowsInOnePiece again(lengths, numbers);
    again.kept = together.kept;
    call.context.is_recomputed = true;
    functions.forward_all(variant.values.get(), call, again.places.data(), static_cast<int>(lengths.size()));
    for (size_t r = 0; r < lengths.size(); ++r)
      for (int j = 0; j < lengths[r]; ++j) EXPECT_NEAR(again.places[r].weights[j], together.places[r].weights[j], kFloatWeights);
  });
}

TEST_P(AttentionRow, SumsToOneWhereItsTypeSaysSo) {
  for_each([](const Variant& variant, Engine engine) {
    if (!variant.entry->info.rows_sum_to_one) return;
    for (const int n : kLengths) {
      ASSERT_NEAR(sum_of(weights_of(variant, engine, random_row(n, 2, 2))), 1, 1e-6) << n << " keys";
      // One key with most of the weight, and all others alike: by the last digit of a threshold, they are off together (and so is a float's
      // sum of them, by half as much as is allowed).
      Row scores(static_cast<size_t>(n), 0.);
      scores[static_cast<size_t>(n / 2)] = .97;
      ASSERT_NEAR(sum_of(weights_of(variant, engine, scores)), 1, 2e-6) << n << " keys, all alike but one";
      Row mixed = random_row(n, 1, 3);  // of magnitudes that lie far apart
      for (size_t j = 0; j < mixed.size(); ++j) mixed[j] = std::ldexp(mixed[j], -static_cast<int>(7 * j % 60));
      ASSERT_NEAR(sum_of(weights_of(variant, engine, mixed)), 1, 1e-6) << n << " keys of mixed magnitudes";
    }
  });
}

TEST_P(AttentionRow, HasTheSameExactZerosOnEveryEngine) {
  for_each([](const Variant& variant, Engine engine) {
    for (const int n : {15, 65, 1000}) {
      const Row scores = random_row(n, 3, 3), expected = weights_of(variant, Engine::kPlainDouble, scores);
      const Row weights = weights_of(variant, engine, scores);
      for (int j = 0; j < n; ++j) {
        if (expected[j] == 0) {
          ASSERT_EQ(weights[j], 0) << "key " << j << " of " << n;
        }
        if (std::abs(expected[j]) > 1e-5) {
          ASSERT_NE(weights[j], 0) << "key " << j << " of " << n;
        }
      }
    }
  });
}

TEST_P(AttentionRow, GivesAllWeightToASingleKeyIfItSumsToOne) {
  for_each([](const Variant& variant, Engine engine) {
    if (!variant.entry->info.rows_sum_to_one) return;
    for (const double z : {-1e4, 0.0, 3.0, 1e4}) ASSERT_NEAR(weights_of(variant, engine, {z})[0], 1, 1e-6);
  });
}

TEST_P(AttentionRow, GivesEqualScoresEqualWeights) {
  for_each([](const Variant& variant, Engine engine) {
    if (variant.entry->info.uses_positions) return;  // and so weighs equal scores by their keys' places
    for (const int n : kLengths) {
      for (const double z : {-1e4, 0.0, 2.5, 1e4}) {
        const Row weights = weights_of(variant, engine, Row(static_cast<size_t>(n), z));
        for (const double p : weights) ASSERT_EQ(p, weights[0]);
        if (variant.entry->info.rows_sum_to_one) {
          ASSERT_NEAR(weights[0] * n, 1, 2e-6) << n << " keys";
        }
      }
    }
  });
}

TEST_P(AttentionRow, StaysFiniteForHugeScores) {
  for_each([](const Variant& variant, Engine engine) {
    for (const int n : {1, 2, 15, 64, 300}) {
      Row scores = random_row(n, 1, 4);
      for (int j = 0; j < n; ++j) scores[j] += j % 3 == 0 ? 1e4 : -1e4;
      const Row weights = weights_of(variant, engine, scores);
      const RowGradients gradients = gradients_of(variant, engine, scores, random_row(n, 1, 5));
      for (int j = 0; j < n; ++j) ASSERT_TRUE(std::isfinite(weights[j]) && std::isfinite(gradients.scores[j])) << "key " << j;
      if (variant.entry->info.rows_sum_to_one) {
        ASSERT_NEAR(sum_of(weights), 1, 1e-6);
      }
    }
  });
}

TEST_P(AttentionRow, IsExactOnHardScoresOfBf16) {
  for_each([](const Variant& variant, Engine engine) {
    for (const int n : {1, 2, 65, 4000}) {
      for (const Row& scores : hard_bf16_rows(n)) {
        const Row expected = weights_of(variant, Engine::kPlainDouble, scores), weights = weights_of(variant, engine, scores);
        const Row gradient = gradients_of(variant, engine, scores, random_row(n, 1, 32)).scores;
        for (size_t j = 0; j < scores.size(); ++j) {
          ASSERT_NEAR(weights[j], expected[j], weights_tolerance(engine) * std::max(1.0, std::abs(expected[j]))) << "key " << j;
          if (expected[j] == 0) {
            ASSERT_EQ(weights[j], 0) << "key " << j;
          }
          ASSERT_TRUE(std::isfinite(gradient[j])) << "key " << j;
        }
        if (variant.entry->info.rows_sum_to_one) {
          ASSERT_NEAR(sum_of(weights), 1, 1e-6) << n << " keys";
        }
      }
    }
  });
}

TEST_P(AttentionRow, DoesNotChangeWhenAllScoresAreShiftedIfItSumsToOne) {
  for_each([](const Variant& variant, Engine engine) {
    if (!variant.entry->info.rows_sum_to_one) return;
    Row scores = random_row(40, 2, 6);
    for (double& z : scores) z = std::round(z * 64) / 64;  // so that the shift is exact in float
    const Row weights = weights_of(variant, engine, scores);
    for (double& z : scores) z -= 1000;
    const Row shifted = weights_of(variant, engine, scores);
    for (size_t j = 0; j < scores.size(); ++j) ASSERT_NEAR(shifted[j], weights[j], weights_tolerance(engine));
  });
}

TEST_P(AttentionRow, HasTheGradientOfFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    int checked = 0;
    for (const int n : {1, 2, 5, 15, 16, 33, 70}) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        const Row scores = random_row(n, 1.5, 7 + seed), direction = random_row(n, 1, 70 + seed);
        if (!is_smooth_around(variant, scores, 3 * kStep)) continue;
        const auto loss = [&](size_t i, double by) {
          Row moved = scores;
          moved[i] += by;
          const Row weights = weights_of(variant, Engine::kPlainDouble, moved);
          return std::inner_product(weights.begin(), weights.end(), direction.begin(), 0.0);
        };
        const Row gradient = gradients_of(variant, Engine::kPlainDouble, scores, direction).scores;
        for (size_t i = 0; i < scores.size(); ++i) {
          // Richardson's extrapolation of two central differences: error of order step^4.
          const double wide = (loss(i, 2 * kStep) - loss(i, -2 * kStep)) / (4 * kStep),
                       narrow = (loss(i, kStep) - loss(i, -kStep)) / (2 * kStep);
          ASSERT_NEAR(gradient[i], (4 * narrow - wide) / 3, kFiniteDifference) << "key " << i << " of " << n;
        }
        ++checked;
      }
    }
    EXPECT_GE(checked, 10) << "too few rows are smooth to check anything";
  }
}

TEST_P(AttentionRow, HasTheGradientForLearnedNumbersOfFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    int checked = 0;
    for (const int n : {1, 2, 5, 15, 33, 70}) {
      const Row scores = random_row(n, 1.5, 20), direction = random_row(n, 1, 21);
      const Row gradient = gradients_of(variant, Engine::kPlainDouble, scores, direction).numbers;
      ASSERT_EQ(gradient.size(), variant.numbers.size());
      for (size_t i = 0; i < gradient.size(); ++i) {
        const auto moved = [&](double by) {
          Row numbers = variant.numbers;
          numbers[i] += by;
          return weights_of(variant, Engine::kPlainDouble, scores, numbers);
        };
        const auto loss = [&](double by) {
          const Row weights = moved(by);
          return std::inner_product(weights.begin(), weights.end(), direction.begin(), 0.0);
        };
        if (zeros_of(moved(2 * kStep)) != zeros_of(moved(-2 * kStep))) continue;  // a kink
        const double wide = (loss(2 * kStep) - loss(-2 * kStep)) / (4 * kStep), narrow = (loss(kStep) - loss(-kStep)) / (2 * kStep);
        ASSERT_NEAR(gradient[i], (4 * narrow - wide) / 3, kFiniteDifference) << "number " << i << ", " << n << " keys";
        ++checked;
      }
    }
    EXPECT_TRUE(variant.numbers.empty() || checked >= 4) << "too few rows are smooth to check anything";
  }
}

TEST_P(AttentionRow, HasTheSameGradientsOnEveryEngine) {
  for_each([](const Variant& variant, Engine engine) {
    for (const int n : kLengths) {
      const Row scores = random_row(n, 1.5, 8), direction = random_row(n, 1, 9);
      const RowGradients expected = gradients_of(variant, Engine::kPlainDouble, scores, direction);
      const RowGradients found = gradients_of(variant, engine, scores, direction);
      for (size_t j = 0; j < scores.size(); ++j) {
        const double tolerance = is_double(engine) ? 0 : kFloatGradients * std::max(1.0, std::abs(expected.scores[j]));
        ASSERT_NEAR(found.scores[j], expected.scores[j], tolerance) << "key " << j << " of " << n;
      }
      for (size_t i = 0; i < expected.numbers.size(); ++i) {
        const double tolerance = is_double(engine) ? 0 : kFloatNumberGradients * std::max(1.0, std::abs(expected.numbers[i]));
        ASSERT_NEAR(found.numbers[i], expected.numbers[i], tolerance) << "number " << i << ", " << n << " keys";
      }
    }
  });
}

TEST_P(AttentionRow, HasTheSameGradientsForLearnedNumbersWhereThoseOfWeightsHaveMuchInCommon) {
  for_each([](const Variant& variant, Engine engine) {
    if (variant.numbers.empty()) return;
    for (const int n : {100, 500, 2000}) {
      const Row scores(static_cast<size_t>(n), .5);  // even: what they have in common counts for nothing
      Row direction = random_row(n, 1, 12);
      for (double& by : direction) by += 1;
      const Row expected = gradients_of(variant, Engine::kPlainDouble, scores, direction).numbers;
      const Row found = gradients_of(variant, engine, scores, direction).numbers;
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], kFloatNumberGradients * std::max(1.0, std::abs(expected[i])))
            << "number " << i << ", " << n << " keys";
    }
  });
}

TEST_P(AttentionRow, GivesNoGradientToAKeyWithoutWeightIfItIsSparse) {
  for_each([](const Variant& variant, Engine engine) {
    if (!variant.entry->is_sparse(variant.values.get())) return;
    const Row scores = random_row(60, 3, 10), weights = weights_of(variant, engine, scores);
    const Row gradient = gradients_of(variant, engine, scores, random_row(60, 1, 11)).scores;
    EXPECT_GT(std::count(weights.begin(), weights.end(), 0.0), 10) << "a sparse type has zeros";
    for (size_t j = 0; j < scores.size(); ++j)
      if (weights[j] == 0) {
        ASSERT_EQ(gradient[j], 0) << "key " << j;
      }
  });
}

TEST_P(AttentionRow, ReadsBackTheOptionsItWrites) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const ConfigNode written = variant.entry->write(variant.values.get());
    const auto again = variant.entry->read(written);
    EXPECT_EQ(variant.entry->write(again.get()).to_yaml(), written.to_yaml());
  }
}

}  // namespace
}  // namespace lacuna::contract

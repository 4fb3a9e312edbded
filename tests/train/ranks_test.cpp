#include <gmock/gmock.h>

#include <cmath>
#include <mutex>
#include <new>

#include "../base/scratch_folder.h"
#include "../ranks/local_places.h"
#include "../ranks/thread_group.h"
#include "config/yaml.h"
#include "model/transformer.h"
#include "ranks/stage.h"
#include "toy.h"
#include "train/shard.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TrainOptions ranks_run() {
  TrainOptions options = ToyRun::small_run();
  options.ema_decay = 0.9;
  options.clip_norm = 0.3;
  return options;
}

/// What a run has come to: equal bit for bit, or not.
struct Outcome {
  NamedTensors weights, average, moments;
  TrainingState state;
  std::vector<TrainingProgress> lines;
  std::vector<int64_t> validated;
  std::vector<std::string> warnings;
  std::vector<ToyRun::Saved> saved;
  std::optional<TrainingEnd> end;
};

struct ToyCase {
  TrainOptions options = ranks_run();
  std::optional<ToyRun::Saved> resumed = {};
  std::function<ToyRun::Loss(int rank)> loss = [](int) { return &ToyModel::loss; };
  std::function<void(ToyRun&, int rank)> prepare = [](ToyRun&, int) {};
  bool has_sockets = false;  ///< ranks meet as processes do
};

/// Runs the toy on a number of ranks. Returns each rank's outcome, and in `thrown` what it has thrown.
std::vector<Outcome> toy_on_ranks(int number, const ToyCase& given, std::vector<std::exception_ptr>* thrown = nullptr) {
  std::vector<Outcome> outcomes(static_cast<size_t>(number));
  const auto errors = (given.has_sockets ? run_over_sockets : run_on_ranks)(number, [&](Group& group) {
    ToyRun run(given.options, given.resumed, given.loss(group.rank()), at::kFloat, group);
    given.prepare(run, group.rank());
    Outcome& outcome = outcomes[static_cast<size_t>(group.rank())];
    try {
      outcome.end = run.trainer.run();
    } catch (...) {
      outcome.state = run.trainer.state();
      outcome.warnings = run.warnings;
      throw;
    }
    outcome = {.weights = ToyRun::copy_of(run.optimizer.weights()),
               .average = ToyRun::copy_of(run.optimizer.ema_weights()),
               .moments = ToyRun::copy_of(run.optimizer.state()),
               .state = run.trainer.state(),
               .lines = run.lines,
               .validated = run.validated,
               .warnings = run.warnings,
               .saved = run.saved,
               .end = outcome.end};
  });
  for (const std::exception_ptr& error : errors)
    if (error && thrown == nullptr) std::rethrow_exception(error);
  if (thrown != nullptr) *thrown = errors;
  return outcomes;
}

TrainingState without_time(TrainingState state) {
  state.hours = 0;
  return state;
}

void expect_same_run(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(same(a.weights, b.weights));
  EXPECT_TRUE(same(a.average, b.average));
  EXPECT_TRUE(same(a.moments, b.moments));
  EXPECT_EQ(without_time(a.state), without_time(b.state));
  EXPECT_EQ(a.validated, b.validated);
  ASSERT_EQ(a.lines.size(), b.lines.size());
  for (size_t i = 0; i < a.lines.size(); ++i) {
    EXPECT_EQ(a.lines[i].loss_per_token, b.lines[i].loss_per_token);
    EXPECT_EQ(a.lines[i].gradient_norm, b.lines[i].gradient_norm);
    EXPECT_EQ(a.lines[i].tokens_per_update, b.lines[i].tokens_per_update);
    EXPECT_EQ(a.lines[i].auxiliary, b.lines[i].auxiliary);
  }
}

TEST(Ranks, TrainToTheBitsOfOneProcessWithAsManyBatchesAnUpdate) {
  for (const int ranks : {2, 3, 4, 5}) {
    SCOPED_TRACE(ranks);
    ToyCase alone;
    alone.options.update_freq = ranks;
    const Outcome one = toy_on_ranks(1, alone).front();
    const std::vector<Outcome> many = toy_on_ranks(ranks, {});
    expect_same_run(many.front(), one);
    EXPECT_EQ(many.front().state.batches_per_update, ranks);
    ASSERT_EQ(many.front().saved.size(), one.saved.size());
    for (size_t i = 0; i < one.saved.size(); ++i) EXPECT_TRUE(same(many.front().saved[i].ema, one.saved[i].ema));
    for (const Outcome& other : many) {
      EXPECT_TRUE(same(other.weights, one.weights));
      EXPECT_EQ(without_time(other.state), without_time(one.state));
      EXPECT_TRUE(&other == &many.front() || (other.average.empty() && other.moments.empty()));
    }
  }
}

TEST(Ranks, TrainOverSocketsToTheSameBits) {
  ToyCase given;
  const Outcome plain = toy_on_ranks(2, given).front();
  given.has_sockets = true;
  for (const Outcome& one : toy_on_ranks(2, given)) EXPECT_TRUE(same(one.weights, plain.weights));
}

TEST(Ranks, ServeAnUpdateOfMoreBatchesThanThereAreRanks) {
  ToyCase given;
  given.options.update_freq = 8;
  const Outcome one = toy_on_ranks(1, given).front();
  given.resumed.emplace();
  ToyRun begin(given.options);
  given.resumed->weights = ToyRun::copy_of(begin.optimizer.weights());
  given.resumed->ema = ToyRun::copy_of(begin.optimizer.ema_weights());
  given.resumed->optimizer = ToyRun::copy_of(begin.optimizer.state());
  given.resumed->state.batches_per_update = 8;
  const Outcome three = toy_on_ranks(3, given).front();
  EXPECT_EQ(three.state.position, one.state.position);
  EXPECT_EQ(three.state.tgt_tokens, one.state.tgt_tokens);
  EXPECT_EQ(three.state.batches_per_update, 8);
  for (const auto& [name, weights] : one.weights) EXPECT_TRUE(at::allclose(three.weights.at(name), weights, 1e-3, 1e-4)) << name;
  const std::vector<Outcome> again = toy_on_ranks(3, given);
  expect_same_run(again.front(), three);
}

TEST(Ranks, TakeUpARunThatAnotherNumberOfThemHasBegun) {
  ToyCase four;
  const Outcome whole = toy_on_ranks(4, four).front();
  const auto stop = [](ToyRun& run, int rank) {
    if (rank == 2) run.interrupts = [](const ToyRun& of) { return of.trainer.state().step >= 11; };
  };
  four.prepare = stop;
  const std::vector<Outcome> stopped = toy_on_ranks(4, four);
  for (const Outcome& one : stopped) {
    EXPECT_EQ(one.end, TrainingEnd::kInterrupted);
    EXPECT_EQ(one.state.step, 11);
  }
  for (const int ranks : {4, 2, 3, 1}) {
    SCOPED_TRACE(ranks);
    ToyCase rest;
    rest.resumed = stopped.front().saved.back();
    const Outcome resumed = toy_on_ranks(ranks, rest).front();
    EXPECT_EQ(resumed.state.position, whole.state.position);
    EXPECT_EQ(resumed.state.tgt_tokens, whole.state.tgt_tokens);
    if (ranks == 4 || ranks == 1) {
      EXPECT_TRUE(same(resumed.weights, whole.weights));
      EXPECT_TRUE(same(resumed.moments, whole.moments));
      EXPECT_EQ(without_time(resumed.state), without_time(whole.state));
    }
    for (const auto& [name, weights] : whole.weights) EXPECT_TRUE(at::allclose(resumed.weights.at(name), weights, 1e-3, 1e-4)) << name;
  }
}

TEST(Ranks, LeaveOutAnUpdateTogether) {
  ToyCase given;
  given.loss = [](int rank) -> ToyRun::Loss {
    return [rank](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
      LossSums sums = model.loss(batch, context);
      if (rank == 1 && context.step == 3) sums.loss = sums.loss * NAN;
      return sums;
    };
  };
  const std::vector<Outcome> ranks = toy_on_ranks(3, given);
  for (const Outcome& one : ranks) {
    EXPECT_EQ(one.state.skipped_updates, 1);
    EXPECT_TRUE(same(one.weights, ranks.front().weights));
  }
  EXPECT_THAT(ranks[0].warnings, ElementsAre(HasSubstr("of step 3 is not finite")));
  EXPECT_TRUE(ranks[1].warnings.empty());
}

TEST(Ranks, SplitTheirOwnBatchWhereMemoryEnds) {
  ToyCase given;
  given.loss = [](int rank) -> ToyRun::Loss {
    return [rank](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
      if (rank == 2 && context.step == 4 && batch.tgt_shape->num_sentences() > 2) throw std::bad_alloc();
      return model.loss(batch, context);
    };
  };
  const std::vector<Outcome> ranks = toy_on_ranks(3, given);
  const Outcome plain = toy_on_ranks(3, {}).front();
  for (const auto& [name, weights] : plain.weights) EXPECT_TRUE(at::allclose(ranks[0].weights.at(name), weights, 1e-3, 1e-4)) << name;
  EXPECT_EQ(ranks[0].state.tgt_tokens, plain.state.tgt_tokens);
  EXPECT_TRUE(ranks[0].warnings.empty());
  EXPECT_THAT(ranks[2].warnings, ElementsAre(HasSubstr("out of memory at step 4 on rank 2 (")));
}

TEST(Ranks, SplitTheirLastBatchWhereMemoryEndsAfterGradientsHaveLeft) {
  for (const int64_t update_freq : {1, 2}) {
    ToyCase given;
    given.options.update_freq = update_freq;
    given.options.log_every = 1;
    const Outcome plain = toy_on_ranks(3, given).front();
    given.prepare = [update_freq](ToyRun& run, int rank) {
      if (rank != 1) return;
      const auto passes = std::make_shared<int64_t>(0);
      run.model.embedding.register_hook([passes, update_freq, &run](const at::Tensor& /*gradient*/) {
        const bool is_last_pass = run.trainer.state().step == 3 && ++*passes == update_freq;
        EXPECT_TRUE(!is_last_pass || run.optimizer.has_sent_gradients());
        if (is_last_pass) throw std::bad_alloc();
      });
    };
    const std::vector<Outcome> ranks = toy_on_ranks(3, given);
    for (const auto& [name, weights] : plain.weights) EXPECT_TRUE(at::allclose(ranks[0].weights.at(name), weights, 1e-3, 1e-4)) << name;
    EXPECT_EQ(ranks[0].state.tgt_tokens, plain.state.tgt_tokens);
    EXPECT_EQ(ranks[0].state.position, plain.state.position);
    EXPECT_THAT(ranks[1].warnings, ElementsAre(AllOf(HasSubstr("out of memory at step 4 on rank 1 ("), HasSubstr("): a batch of "),
                                                     HasSubstr(" target tokens is split in two and repeated"))));
    EXPECT_TRUE(ranks[0].warnings.empty());  // the others wait, and do nothing else
    EXPECT_TRUE(ranks[2].warnings.empty());
    ASSERT_EQ(ranks[0].lines.size(), plain.lines.size());
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ranks[0].lines[i].gradient_norm, plain.lines[i].gradient_norm);
    EXPECT_NEAR(ranks[0].lines[3].gradient_norm / plain.lines[3].gradient_norm, 1, 1e-6);
    EXPECT_EQ(ranks[0].lines[3].tokens_per_update, plain.lines[3].tokens_per_update);
  }
}

TEST(Ranks, SendGradientsInHalfTheBytesIfSoAsked) {
  ToyCase given;
  const Outcome plain = toy_on_ranks(3, given).front();
  given.options.exchange = ExchangeType::kBf16;
  const Outcome one = toy_on_ranks(3, given).front(), again = toy_on_ranks(3, given).front();
  expect_same_run(one, again);
  EXPECT_FALSE(same(one.weights, plain.weights));
  for (const auto& [name, weights] : plain.weights) EXPECT_TRUE(at::allclose(one.weights.at(name), weights, 0.1, 0.05)) << name;
  given.options.update_freq = 3;
  const Outcome alone = toy_on_ranks(1, given).front();  // which sends nothing
  EXPECT_TRUE(same(alone.weights, plain.weights));
}

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "nothing";
  return Failure(error).text;
}

/// The error that ends all ranks is told once on a machine, and all of these ranks are on one.
void expect_all_end(const std::vector<std::exception_ptr>& thrown, const std::string& text) {
  EXPECT_THAT(text_of(thrown.front()), HasSubstr(text));
  for (const std::exception_ptr& error : thrown) EXPECT_TRUE(error != nullptr);
}

TEST(Ranks, EndWithTheErrorOfOneOfThem) {
  ToyCase given;
  given.loss = [](int rank) -> ToyRun::Loss {
    return [rank](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
      if (rank == 1 && context.step == 5) throw std::bad_alloc();
      return model.loss(batch, context);
    };
  };
  std::vector<std::exception_ptr> thrown;
  const std::vector<Outcome> ranks = toy_on_ranks(3, given, &thrown);
  expect_all_end(thrown, "out of memory at step 5 with a single sentence of");
  for (const Outcome& one : ranks) EXPECT_EQ(one.state.step, 4);
}

TEST(Ranks, EndWithWhatAProgressBarOfOneOfThemHasThrown) {
  for (const int64_t step : {7, 23}) {
    ToyCase given;
    given.prepare = [step](ToyRun& run, int rank) {
      if (rank == 0)
        run.on_update = [step](const TrainingState& state) {
          if (state.step == step) throw MachineError("no space left on device");
        };
    };
    std::vector<std::exception_ptr> thrown;
    const std::vector<Outcome> ranks = toy_on_ranks(2, given, &thrown);
    expect_all_end(thrown, "no space left on device");
    for (const Outcome& one : ranks) EXPECT_EQ(one.state.step, step);
  }
}

TEST(Ranks, EndWithALostOne) {
  ToyCase given;
  given.loss = [](int rank) -> ToyRun::Loss {
    return [rank](const ToyModel& model, const Batch& batch, const ForwardContext& context) {
      if (rank == 1 && context.step == 5) throw LostRankError("gone");
      return model.loss(batch, context);
    };
  };
  std::vector<std::exception_ptr> thrown;
  const std::vector<Outcome> ranks = toy_on_ranks(3, given, &thrown);
  EXPECT_EQ(text_of(thrown[0]), "another thread has ended");
  EXPECT_EQ(text_of(thrown[1]), "gone");
  EXPECT_EQ(ranks[1].state.step, 4);
  for (const int other : {0, 2})
    EXPECT_THAT(ranks[static_cast<size_t>(other)].state.step, AnyOf(3, 4));  // it may still be at the end of step 4
}

TEST(Ranks, ValidateTheWholeMovingAverage) {
  std::mutex mutex;
  std::vector<NamedTensors> seen;
  ToyCase given;
  given.prepare = [&](ToyRun& run, int) {
    run.score = [&](const ToyRun& of) {
      if (of.trainer.state().step != 10) return 1.0;
      const auto parameters = of.model.parameters();
      const std::lock_guard lock(mutex);
      seen.push_back(ToyRun::copy_of({parameters.begin(), parameters.end()}));
      return 1.0;
    };
  };
  const std::vector<Outcome> ranks = toy_on_ranks(3, given);
  ASSERT_EQ(seen.size(), 3u);
  for (const NamedTensors& one : seen) EXPECT_TRUE(same(one, ranks.front().saved[1].ema));
}

TEST(Ranks, FindWhatIsNotFiniteInAnyPart) {
  std::vector<std::string> found(3), before(3);
  run_on_ranks(3, [&](Group& group) {
    ToyRun run(ranks_run(), {}, &ToyModel::loss, at::kFloat, group);
    before[static_cast<size_t>(group.rank())] = run.optimizer.not_finite();
    NamedTensors moments = {{"adam.first_moment.embedding", at::zeros({10, 4})},
                            {"adam.first_moment.projection", at::zeros({4, 10})},
                            {"adam.second_moment.embedding", at::zeros({10, 4})},
                            {"adam.second_moment.projection", at::full({4, 10}, NAN)}};
    run.optimizer.load_state(moments, 3, "test");
    found[static_cast<size_t>(group.rank())] = run.optimizer.not_finite();
  });
  EXPECT_THAT(before, Each(std::string()));
  EXPECT_THAT(found, Each(HasSubstr("adam.second_moment.projection has 40 of 40 values that are not finite")));
}

TEST(Ranks, TakeTheWeightsOfTheFirst) {
  std::vector<NamedTensors> weights(3);
  run_on_ranks(3, [&](Group& group) {
    ToyRun run(ranks_run(), {}, &ToyModel::loss, at::kFloat, group);
    run.optimizer.load_weights(
        {{"embedding", at::full({10, 4}, group.rank() + 1.0)}, {"projection", at::full({4, 10}, group.rank() + 1.0)}}, "test");
    run.optimizer.share_weights();
    weights[static_cast<size_t>(group.rank())] = ToyRun::copy_of(run.optimizer.weights());
  });
  for (const NamedTensors& one : weights)
    EXPECT_TRUE(one.at("embedding").eq(1).all().item<bool>() && one.at("projection").eq(1).all().item<bool>());
}

/// Parameters of several buckets and of odd sizes.
NamedParameters large_parameters() {
  NamedParameters parameters;
  int64_t seed = 0;
  for (const int64_t size : {1500001, 3, 700000, 17, 1048576, 40000, 5}) {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(++seed));
    parameters.emplace_back(std::to_string(seed), at::randn({size}, generator).requires_grad_());
  }
  return parameters;
}

/// The gradient of a parameter by a batch; undefined for some.
at::Tensor large_gradient(const at::Tensor& parameter, int64_t batch, size_t index) {
  if ((static_cast<size_t>(batch) + index) % 3 == 0) return {};
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(1000 * batch) + index);
  return at::randn(parameter.sizes(), generator);
}

void add_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor& sum = parameter.mutable_grad();
  if (!gradient.defined()) return;
  if (sum.defined())
    sum.add_(gradient);
  else
    sum = gradient;
}

TEST(Ranks, UpdateParametersOfManyBuckets) {
  const auto update_on = [](int ranks) {
    std::pair<NamedTensors, std::vector<double>> result;
    run_on_ranks(ranks, [&](Group& group) {
      const NamedParameters parameters = large_parameters();
      const std::vector<ParameterGroup> groups = {{"main", {parameters.begin(), parameters.begin() + 5}},
                                                  {"auxiliary", {parameters.begin() + 5, parameters.end()}}};
      TrainOptions options = ranks_run();
      options.clip_norm = 1000;
      Optimizer optimizer(FlatParameters{groups}, options, {{"1", -2, 2}, {"5", 0, 1}}, group);
      for (int64_t step = 0; step < 3; ++step) {
        for (int64_t batch = 0; batch < 4; ++batch)
          for (size_t i = 0; i < parameters.size(); ++i)
            if (batch % group.size() == group.rank())
              add_gradient(parameters[i].second, large_gradient(parameters[i].second, 4 * step + batch, i));
        const UpdateResult update = optimizer.update(0.01, 0.25, step != 1);
        if (group.is_first()) result.second.insert(result.second.end(), {update.gradient_norm, update.auxiliary_gradient_norm});
      }
      NamedTensors all = ToyRun::copy_of(optimizer.weights());
      for (const auto& [name, tensor] : optimizer.ema_weights()) all["average." + name] = tensor.clone();
      all.merge(ToyRun::copy_of(optimizer.state()));
      if (group.is_first()) result.first = all;
    });
    return result;
  };
  const auto alone = update_on(1), four = update_on(4);
  EXPECT_TRUE(same(four.first, alone.first));
  EXPECT_EQ(four.second, alone.second);
}

ModelOptions sparse_options() {
  ModelOptions options;
  options.d_model = 16;
  options.num_heads = 2;
  options.d_ff = 24;
  options.encoder_layers = options.decoder_layers = 1;
  options.dropout = 0.1;
  options.attention_dropout = 0.1;
  options.attention = parse_yaml("{encoder_self: {type: entmax, alpha: learned}, cross: {type: calibrated, mask_every: 2}}", "test");
  return options;
}

/// What a small Transformer with sparse attention comes to on the toy's batches.
Outcome transformer_on_ranks(int ranks, int64_t update_freq) {
  Outcome outcome;
  const auto errors = run_on_ranks(ranks, [&](Group& group) {
    TrainOptions options = ranks_run();
    options.update_freq = update_freq;
    options.lr = 0.01;
    options.precision = Precision::kFp32;
    const auto model = std::make_shared<Transformer>(sparse_options(), VocabularySizes{10, 10, true}, 1);
    Optimizer optimizer(FlatParameters(trained_parameters(*model)), options, model->parameter_ranges(), group);
    ToyStream stream({}, share_of(group, options, {}));
    Outcome own;
    TrainerHooks hooks;
    hooks.log = [&](const TrainingProgress& line) { own.lines.push_back(line); };
    hooks.save = [](const TrainingState&, const Scores&, bool) {};
    Trainer trainer(options, 1, transformer_loss(model, options, "cpu"), stream, optimizer, LearningRate(options, 16), hooks, {});
    trainer.run();
    own.weights = ToyRun::copy_of(optimizer.weights());
    own.average = ToyRun::copy_of(optimizer.ema_weights());
    own.moments = ToyRun::copy_of(optimizer.state());
    own.state = trainer.state();
    if (group.is_first()) outcome = own;
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return outcome;
}

TEST(Ranks, TrainSparseTransformersToTheBitsOfOneProcess) {
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Outcome one = transformer_on_ranks(1, ranks), many = transformer_on_ranks(ranks, 1);
    expect_same_run(many, one);
    EXPECT_FALSE(one.lines.back().auxiliary.empty());
  }
}

}  // namespace
}  // namespace lacuna

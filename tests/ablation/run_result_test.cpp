#include "ablation/run_result.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "../base/scratch_folder.h"
#include "base/error.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;

RunResult whole_row() {
  return {.variant = "rela",
          .seed = 2,
          .fingerprint = "f",
          .shared_fingerprint = "s",
          .test_set = "test2016",
          .signature = "nrefs:1",
          .bleu = 40.5,
          .chrf = 60,
          .bleu_interval = 1.5,
          .valid_loss = 1.25,
          .train_speed = 1000,
          .translate_speed = 500,
          .parameters = 7,
          .peak_mebibytes = 100,
          .epochs = 6,
          .updates = 1200,
          .hours = .5,
          .sparsity = {{"cross", .75}},
          .comparison = Comparison{.against = "softmax", .seed = 2, .difference = -.5, .p_value = .04}};
}

TEST(Results, ReadBackAsTheyWereWritten) {
  const ScratchFolder folder;
  const std::string file = folder / "results.jsonl";
  ResultsFile(file).put(whole_row());
  const ResultsFile read(file);
  ASSERT_EQ(read.rows().size(), 1u);
  EXPECT_EQ(to_json(read.rows()[0]), to_json(whole_row()));
  EXPECT_EQ(read.rows()[0].comparison->p_value, .04);
}

TEST(Results, OfAnOlderLacunaHaveNoSharedFingerprint) {
  const ResultsFile results(LACUNA_SOURCE_DIR "/docs/results/multi30k.jsonl");
  ASSERT_FALSE(results.rows().empty());
  for (const RunResult& row : results.rows()) EXPECT_EQ(row.shared_fingerprint, "") << row.variant;
}

TEST(Results, WhatIsUnknownStaysSo) {
  const ScratchFolder folder;
  const std::string file = folder / "results.jsonl";
  ResultsFile(file).put({.variant = "a", .error = "training has diverged", .valid_loss = std::numeric_limits<double>::quiet_NaN()});
  const ResultsFile results(file);
  const RunResult& row = results.rows().at(0);
  EXPECT_FALSE(row.is_ended());
  EXPECT_FALSE(row.bleu || row.comparison || row.valid_loss);
  EXPECT_EQ(row.error, "training has diverged");
}

TEST(Results, ARowOfTheSameVariantAndSeedIsReplaced) {
  const ScratchFolder folder;
  ResultsFile results(folder / "results.jsonl");
  results.put({.variant = "a", .seed = 1});
  results.put({.variant = "a", .seed = 2});
  results.put({.variant = "a", .seed = 1, .bleu = 3});
  ASSERT_EQ(results.rows().size(), 2u);
  EXPECT_EQ(results.find("a", 1)->bleu, 3);
  EXPECT_EQ(results.find("a", 3), nullptr);
}

TEST(Results, ARowWithoutErrorAndScoreIsNamed) {
  const ScratchFolder folder;
  RunResult row = whole_row();
  row.bleu.reset();
  const std::string file = folder.write("results.jsonl", to_json(row).dump() + "\n");
  EXPECT_THAT(message_of<DataError>([&] { ResultsFile results(file); }),
              AllOf(HasSubstr("results.jsonl:1"), HasSubstr("neither an error nor bleu"), HasSubstr("remove the line")));
}

TEST(Results, ALineThatIsNoRowIsNamed) {
  const ScratchFolder folder;
  const std::string file = folder.write("results.jsonl", to_json(whole_row()).dump() + "\n{\"variant\": 1}\n");
  EXPECT_THAT(message_of<DataError>([&] { ResultsFile results(file); }), AllOf(HasSubstr("results.jsonl:2"), HasSubstr("remove the line")));
}

}  // namespace
}  // namespace lacuna

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/process.h"
#include "cli/verb.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

/// Returns the output of `lacuna evaluate` with the tests' own sacreBLEU.
std::string evaluate(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--sacrebleu", test_python() + " -m sacrebleu"});
  testing::internal::CaptureStdout();
  const int exit_code = evaluate_verb().run(arguments);
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(exit_code, 0);
  return output;
}

std::string usage_error(const std::vector<std::string>& arguments) {
  return message_of<UsageError>([&] { evaluate_verb().run(arguments); });
}

struct Files : Scratch {
  std::string hyp = write("hyp", "the cat sat on a mat today\nhello\n"), better = write("better", "the cat sat on the mat today\nhallo\n");
  std::string ref = write("ref", "the cat sat on the mat today\nhello\n");
};

TEST(Evaluate, PrintsEveryScoreWithItsSignature) {
  const Files files;
  const std::string text = evaluate({"--hyp", files.hyp, "--ref", files.ref});
  EXPECT_THAT(text, HasSubstr("BLEU "));
  EXPECT_THAT(text, HasSubstr("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"));
  EXPECT_THAT(text, HasSubstr("chrF2 "));
  EXPECT_THAT(text, HasSubstr("TER      12.50"));
}

TEST(Evaluate, JsonHoldsTheSame) {
  const Files files;
  const auto report = nlohmann::json::parse(evaluate({"--hyp", files.hyp, "--ref", files.ref, "--json", "--metrics", "ter,ter,bleu"}));
  EXPECT_EQ(report["scores"]["ter"]["score"], 12.5);
  EXPECT_EQ(report["scores"].size(), 2u);
  EXPECT_EQ(report["tokenizer"], "13a");
  EXPECT_EQ(report["lines"], 2);
}

TEST(Evaluate, SeveralSystemsAreComparedToTheFirst) {
  const Files files;
  EXPECT_THAT(evaluate({"--hyp", files.hyp, files.better, "--ref", files.ref, "--paired-bootstrap", "50"}),
              HasSubstr("Baseline: " + files.hyp));
}

TEST(Evaluate, SeveralSystemsAsJson) {
  const Files files;
  const auto report = nlohmann::json::parse(
      evaluate({"--hyp", files.hyp, "--hyp", files.better, "--ref", files.ref, "--paired-bootstrap", "50", "--json"}));
  EXPECT_EQ(report["systems"][1]["hypotheses"], files.better);
  EXPECT_TRUE(report["systems"][1]["scores"]["bleu"]["p_value"].is_number());
  EXPECT_TRUE(report["signatures"].contains("ter"));
}

TEST(Evaluate, ReadsGzip) {
  const Files files;
  run_process({"gzip", "-k", files.hyp, files.ref});
  EXPECT_EQ(evaluate({"--hyp", files.hyp + ".gz", "--ref", files.ref + ".gz"}), evaluate({"--hyp", files.hyp, "--ref", files.ref}));
}

TEST(Evaluate, JoinsPieces) {
  const Files files;
  const std::string in_pieces = files.write("pieces", "the c@@ at sat on the m@@ at to@@ day\nhe@@ llo@@\n");
  const std::string whole = evaluate({"--hyp", files.hyp, "--ref", files.ref});
  EXPECT_EQ(evaluate({"--hyp", files.hyp, "--ref", in_pieces, "--joiner", "@@"}), whole);
  EXPECT_NE(evaluate({"--hyp", files.hyp, "--ref", in_pieces}), whole);
  const std::string compared =
      evaluate({"--hyp", files.hyp, files.better, "--ref", in_pieces, "--joiner", "@@", "--paired-bootstrap", "50"});
  EXPECT_THAT(compared, HasSubstr("Baseline: " + files.hyp));
  EXPECT_THAT(compared, HasSubstr(files.better));
  EXPECT_EQ(nlohmann::json::parse(evaluate({"--hyp", files.hyp, "--ref", in_pieces, "--joiner", "@@", "--json"}))["joiner"], "@@");
  EXPECT_THAT(usage_error({"--ref", "x", "--joiner", "@@ "}), HasSubstr("without the space behind it"));
}

TEST(Evaluate, HelpIsNoError) {
  EXPECT_THAT(evaluate({"--help"}), HasSubstr("--paired-bootstrap"));
}

TEST(Evaluate, MissingReferencesAreAUsageError) {
  EXPECT_THAT(usage_error({"--hyp", "x"}), HasSubstr("--ref is required"));
}

TEST(Evaluate, AnUnknownMetricIsAUsageError) {
  EXPECT_THAT(usage_error({"--ref", "x", "--metrics", "blue"}), HasSubstr("blue not in {bleu,chrf,ter}"));
}

TEST(Evaluate, AnUnknownFlagIsAUsageError) {
  EXPECT_THAT(usage_error({"--ref", "x", "--lowercased"}), HasSubstr("--lowercased"));
}

TEST(EvaluateScript, WithoutFilesItSaysHowItIsUsed) {
  const ProcessResult result = run_process({LACUNA_SOURCE_DIR "/scripts/evaluate.sh", "only-one"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("usage: scripts/evaluate.sh HYPOTHESES REFERENCES"));
}

}  // namespace
}  // namespace lacuna

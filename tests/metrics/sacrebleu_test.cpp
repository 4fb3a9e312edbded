#include "metrics/sacrebleu.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/process.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kHypotheses = {"the cat sat on a mat today .", "hello world how is you", ""};
const std::vector<std::string> kReferences = {"The cat sat on the mat today.", "hello world how are you", "nothing"};

CorpusScores score(const ScoreOptions& options, const Scorer& scorer = real_scorer()) {
  return score_lines(scorer, kHypotheses, {kReferences}, options);
}

/// sacreBLEU's own answer, asked without any of our code's options but the metrics.
nlohmann::json direct_answer() {
  const Scratch scratch;
  write_lines(scratch.path() / "hyp", kHypotheses);
  write_lines(scratch.path() / "ref", kReferences);
  const std::string hyp = scratch.path() / "hyp", ref = scratch.path() / "ref";
  return nlohmann::json::parse(
      run_process({test_python(), "-m", "sacrebleu", ref, "-i", hyp, "-m", "bleu", "chrf", "ter", "-w", "4"}).output);
}

TEST(Sacrebleu, ScoresAndSignaturesAreThoseOfADirectCall) {
  const nlohmann::json direct = direct_answer();
  const CorpusScores scores = score({});
  for (const auto& [index, metric] : {std::pair(0, scores.bleu), std::pair(1, scores.chrf), std::pair(2, scores.ter)}) {
    ASSERT_TRUE(metric);
    EXPECT_EQ(metric->name, direct[index]["name"]);
    EXPECT_EQ(metric->score, direct[index]["score"]);
    EXPECT_EQ(metric->signature, direct[index]["signature"]);
  }
  EXPECT_EQ(scores.bleu->details, direct[0]["verbose_score"]);
  EXPECT_EQ(scores.num_lines, 3);
}

TEST(Sacrebleu, GivesOnlyTheMetricsAskedFor) {
  const CorpusScores scores = score({.metrics = {"chrf"}});
  EXPECT_TRUE(scores.chrf);
  EXPECT_FALSE(scores.bleu || scores.ter);
}

TEST(Sacrebleu, TheFormatInTheEnvironmentDoesNotDisturb) {
  const ScopedVariable format("SACREBLEU_FORMAT", "text");
  EXPECT_GT(score({.metrics = {"bleu", "chrf"}}).bleu->score, 10);
}

TEST(Sacrebleu, LowercaseIsSeenByBleuAndChrf) {
  const CorpusScores cased = score({.metrics = {"bleu", "chrf"}}), lowercased = score({.metrics = {"bleu", "chrf"}, .lowercase = true});
  EXPECT_THAT(lowercased.bleu->signature, HasSubstr("case:lc"));
  EXPECT_THAT(lowercased.chrf->signature, HasSubstr("case:lc"));
  EXPECT_GT(lowercased.bleu->score, cased.bleu->score);
  EXPECT_GT(lowercased.chrf->score, cased.chrf->score);
}

TEST(Sacrebleu, SeveralReferencesCount) {
  const CorpusScores scores = score_lines(real_scorer(), kHypotheses, {kReferences, kHypotheses}, {.metrics = {"bleu"}});
  EXPECT_THAT(scores.bleu->signature, HasSubstr("nrefs:2"));
  EXPECT_EQ(scores.bleu->score, 100);
}

TEST(Sacrebleu, ChineseIsCutIntoCharacters) {
  for (const char* code : {"zh-Hant", "zho_Hant"}) {
    const CorpusScores scores = score_lines(real_scorer(), {"我喜歡貓"}, {{"我喜歡狗"}}, {.tgt_lang = code});
    EXPECT_EQ(scores.tokenizer, "zh");
    EXPECT_THAT(scores.bleu->signature, HasSubstr("tok:zh"));
    EXPECT_EQ(scores.ter->score, 25);
  }
}

TEST(Sacrebleu, ImportsNothingFromTheCurrentFolder) {
  const Scratch scratch;
  for (const char* const name : {"random.py", "json.py", "sacrebleu.py"})
    scratch.write(name, "raise SystemExit('a file of the user ran')\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  const CorpusScores scores = score_lines(real_scorer(), kHypotheses, {kHypotheses}, {.metrics = {"bleu"}});
  std::filesystem::current_path(before);
  EXPECT_EQ(scores.bleu->score, 100);
}

TEST(Sacrebleu, TheTokenizerFollowsTheTargetLanguage) {
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "zh"}), "zh");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "zh_CN"}), "zh");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "JA"}), "ja-mecab");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "ko"}), "ko-mecab");
  for (const char* chinese : {"zho_Hans", "cmn", "yue_Hant", "chi", "ZHO"}) EXPECT_EQ(bleu_tokenizer({.tgt_lang = chinese}), "zh");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "jpn_Jpan"}), "ja-mecab");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "kor_Hang"}), "ko-mecab");
  for (const char* spaceless : {"th", "tha_Thai", "lo", "lao_Laoo", "km", "khm_Khmr", "my", "mya_Mymr", "bur", "bo", "dzo_Tibt"})
    EXPECT_EQ(bleu_tokenizer({.tgt_lang = spaceless}), "char") << spaceless;
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "de"}), "13a");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "deu_Latn"}), "13a");
  EXPECT_EQ(bleu_tokenizer({}), "13a");
  EXPECT_EQ(bleu_tokenizer({.tgt_lang = "zh", .tokenizer = "char"}), "char");
}

TEST(Sacrebleu, ATokenizerOfPackagesOfItsOwnIsTriedBeforehand) {
  const Scratch scratch;
  const std::string program =
      scratch.write_program("sacrebleu", "printf 'Traceback\\n  main()\\nRuntimeError:\\n    pip install sacrebleu[ja]\\n' >&2; exit 1");
  const Scorer without = {{program}};
  const std::string lacks = ") lacks packages that its tokenizer ja-mecab needs; install them where it is: ";
  EXPECT_EQ(message_of<MachineError>([&] { require_tokenizer(without, "ja"); }),
            "sacreBLEU (" + program + lacks + "pip install 'sacrebleu[ja]'");
  const Scorer as_module = {{program, "-m", "sacrebleu"}};
  EXPECT_EQ(message_of<MachineError>([&] { require_tokenizer(as_module, "ja"); }),
            "sacreBLEU (" + program + " -m sacrebleu" + lacks + program + " -m pip install 'sacrebleu[ja]'");
  EXPECT_THROW(require_tokenizer(without, "ko"), MachineError);
  EXPECT_NO_THROW(require_tokenizer(without, "de"));
  EXPECT_NO_THROW(require_tokenizer(without, ""));
}

TEST(Sacrebleu, AnUnknownTokenizerIsAUsageErrorInItsOwnWords) {
  EXPECT_THAT(message_of<UsageError>([] { score({.tokenizer = "13b"}); }), HasSubstr("invalid choice: '13b'"));
}

TEST(Sacrebleu, AFailingOneShowsItsLastWords) {
  const Scratch scratch;
  const Scorer failing = {{scratch.write_program("sacrebleu", "echo first; for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 1")}};
  const std::string message = message_of<MachineError>([&] { score({}, failing); });
  EXPECT_THAT(message, HasSubstr("failed with exit code 1"));
  EXPECT_THAT(message, HasSubstr("line 8"));
  EXPECT_THAT(message, Not(HasSubstr("line 2")));
}

TEST(Sacrebleu, AnAnswerThatIsNotJsonIsRefused) {
  const Scratch scratch;
  const Scorer talker = {{scratch.write_program("sacrebleu", "echo 'BLEU = 12'")}};
  EXPECT_THAT(message_of<MachineError>([&] { score({}, talker); }), HasSubstr("answered with \"BLEU = 12\""));
}

TEST(Sacrebleu, AnAnswerWithoutAMetricIsRefused) {
  const Scratch scratch;
  const Scorer forgetful = {{scratch.write_program("sacrebleu", R"(echo '{"name": "BLEU", "score": 1, "signature": "x"}')")}};
  EXPECT_THAT(message_of<MachineError>([&] { score({}, forgetful); }), HasSubstr("not what sacreBLEU 2 writes"));
}

TEST(Sacrebleu, AScoreOfZeroHasAnIntervalToo) {
  const auto score_of_nothing = [](int64_t samples) {
    return *score_lines(real_scorer(), {"a"}, {{"b"}}, {.metrics = {"bleu"}, .confidence_samples = samples}).bleu;
  };
  EXPECT_EQ(score_of_nothing(10).mean, 0);
  EXPECT_EQ(score_of_nothing(10).interval, 0);
  EXPECT_FALSE(score_of_nothing(0).interval);
}

TEST(Sacrebleu, AWarningIsPassedOn) {
  const Scratch scratch;
  const std::string answer = R"(echo careful >&2; echo '{"name": "BLEU", "score": 1, "signature": "x"}')";
  EXPECT_EQ(score({.metrics = {"bleu"}}, {{scratch.write_program("sacrebleu", answer)}}).notes, "careful\n");
}

}  // namespace
}  // namespace lacuna

#include "search/translator.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "../text/other_vocabulary.h"
#include "letters.h"
#include "toy_model.h"

namespace lacuna {
namespace {

/// A table that copies its source.
std::shared_ptr<ToyModel> copier(int64_t max_positions = 0) {
  return std::make_shared<ToyModel>(
      kLetterVocabulary,
      [](const Tokens& src, const Tokens& tokens) { return says(Tokens(src.begin(), src.end() - 1), kLetterVocabulary)(src, tokens); },
      max_positions);
}

std::vector<TranslationInput> lines_of(const std::vector<std::string>& texts) {
  std::vector<TranslationInput> lines;
  for (const std::string& text : texts) lines.push_back({text, "", static_cast<int64_t>(lines.size())});
  return lines;
}

std::vector<std::string> best_texts(const std::vector<TranslatedLine>& lines) {
  std::vector<std::string> texts;
  for (const TranslatedLine& line : lines) texts.push_back(line.translations.front().text);
  return texts;
}

TEST(Translator, GivesLinesInTheOrderOfTheInput) {
  const std::vector<std::string> texts = {"a", "b c d e", "f", "g h", "i j a b c"};
  EXPECT_EQ(best_texts(Translator(copier(), letters(), {beam_of(3)}).translate(lines_of(texts))), texts);
}

TEST(Translator, AnEmptyLineStaysEmpty) {
  const auto model = copier();
  EXPECT_EQ(best_texts(Translator(model, letters(), {beam_of(3)}).translate(lines_of({"", "a b", "", "  "}))),
            (std::vector<std::string>{"", "a b", "", ""}));
}

TEST(Translator, AskedForNothingAsksNothingOfTheModel) {
  const auto model = copier();
  EXPECT_TRUE(Translator(model, letters(), {beam_of(3)}).translate({}).empty());
  Translator(model, letters(), {beam_of(3)}).translate(lines_of({"", ""}));
  EXPECT_EQ(model->steps, 0);
}

TEST(Translator, BatchSizeDoesNotChangeTranslations) {
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i) {
    texts.emplace_back(1, static_cast<char>('a' + i % 10));
    for (int n = 0; n < i % 6; ++n) texts.back() += std::string(" ") + static_cast<char>('a' + (i * 3 + n) % 10);
  }
  for (const int beam_size : {3, 20}) {
    std::vector<std::vector<std::string>> found;
    for (const int64_t batch_tokens : {int64_t{1}, int64_t{20}, int64_t{1000}, std::numeric_limits<int64_t>::max()}) {
      TranslateOptions options = beam_of(beam_size);
      options.batch_tokens = batch_tokens;
      const auto model = std::make_shared<ToyModel>(kLetterVocabulary, random_table(kLetterVocabulary));
      found.push_back(best_texts(Translator(model, letters(), {options}).translate(lines_of(texts))));
    }
    for (const auto& texts_found : found) EXPECT_EQ(texts_found, found[0]) << "beam " << beam_size;
  }
}

/// A toy model that several threads may call at once.
class SharedToy : public ToyModel {
 public:
  using ToyModel::ToyModel;
  Logits step(const Tokens& tokens, DecoderCache& cache) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ToyModel::step(tokens, cache);
  }
  bool is_thread_safe() const override { return true; }

 private:
  std::mutex mutex_;
};

TEST(Translator, TheNumberOfThreadsDoesNotChangeTranslations) {
  std::vector<std::string> texts;
  for (int i = 0; i < 600; ++i)
    texts.push_back(std::string("a b c ") + static_cast<char>('a' + i % 10) + " " + static_cast<char>('a' + i / 60));
  texts[7] = "";
  const int threads = at::get_num_threads();
  std::vector<std::vector<std::string>> found;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    Translator translator(std::make_shared<SharedToy>(kLetterVocabulary, random_table(kLetterVocabulary)), letters(), {beam_of(2)});
    EXPECT_EQ(translator.num_workers(), count);
    found.push_back(best_texts(translator.translate(lines_of(texts))));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(found[0], found[1]);
}

TEST(Translator, GivesAllOfTheNBest) {
  const auto lines = Translator(copier(), letters(), {beam_of(4, 3)}).translate(lines_of({"a b"}));
  EXPECT_EQ(lines[0].translations.size(), 3u);
}

TEST(Translator, ALineBeyondThePositionsIsCutAndMarked) {
  const auto lines = Translator(copier(4), letters(), {beam_of(2)}).translate(lines_of({"a b c d e", "a b c"}));
  EXPECT_EQ(lines[0].translations.front().text, "a b c");
  EXPECT_TRUE(lines[0].is_cropped);
  EXPECT_FALSE(lines[1].is_cropped);
}

TEST(Translator, ALineThatIsNoSentenceIsCutWhateverThePositions) {
  std::string line = "a";
  for (int64_t i = 0; i < kMostSourceTokens; ++i) line += " b";
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  EXPECT_TRUE(Translator(copier(), letters(), {options}).translate(lines_of({line}))[0].is_cropped);
}

TEST(Translator, SaysHowMuchOfALineIsUnknown) {
  const auto lines = Translator(copier(), letters(), {beam_of(3)}).translate(lines_of({"a b", "a x b y", "x y", ""}));
  std::vector<double> ratios;
  for (const TranslatedLine& line : lines) ratios.push_back(line.unknown_ratio);
  EXPECT_EQ(ratios, (std::vector<double>{0, 0.5, 1, 0}));
}

TEST(Translator, BeginsWithThePrefix) {
  std::vector<TranslationInput> lines = lines_of({"a b c"});
  lines[0].prefix = "j i";
  EXPECT_EQ(Translator(copier(), letters(), {beam_of(2)}).translate(lines)[0].translations.front().text, "j i c");
}

TEST(Translator, APrefixWithoutRoomIsCutAndMarked) {
  TranslateOptions options = beam_of(2);
  options.max_length = 4;
  std::vector<TranslationInput> lines = lines_of({"a b c", "a b c"});
  lines[0].prefix = "j i h g";
  lines[1].prefix = "j i h";
  const auto translated = Translator(copier(), letters(), {options}).translate(lines);
  for (const TranslatedLine& line : translated) EXPECT_EQ(line.translations.front().text, "j i h");
  EXPECT_TRUE(translated[0].is_prefix_cropped);
  EXPECT_FALSE(translated[1].is_prefix_cropped);
}

TEST(Translator, LinksEachTargetWordToTheSourceWordItLookedAt) {
  TranslatorSettings settings{beam_of(2), AlignmentLevel::kWord, 0, 1};
  const auto lines = Translator(copier(), letters(), settings).translate(lines_of({"c a b"}));
  EXPECT_EQ(lines[0].translations.front().alignment, (std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {1, 1}, {2, 2}}));
}

TEST(Translator, JoinsPiecesAndLinksWholeWords) {
  const VocabularyPtr vocabulary = token_list_from_bytes("a@@\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "pieces");
  TranslateOptions options = beam_of(2);
  options.joiner = "@@";
  const auto best = [&](AlignmentLevel level) {
    Translator translator(copier(), {vocabulary, vocabulary}, {options, level, 0, 1});
    return translator.translate(lines_of({"c a@@ b d a@@"}))[0].translations.front();
  };
  using Links = std::vector<std::pair<int32_t, int32_t>>;
  EXPECT_EQ(best(AlignmentLevel::kWord).text, "c ab d a");
  EXPECT_EQ(best(AlignmentLevel::kWord).alignment, (Links{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
  EXPECT_EQ(best(AlignmentLevel::kPiece).alignment, (Links{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}));
}

TEST(Translator, LogProbIsTheSumOverTokensWithEos) {
  const Translation best = Translator(copier(), letters(), {beam_of(2)}).translate(lines_of({"a b"}))[0].translations.front();
  ASSERT_EQ(best.token_log_probs.size(), 3u);
  EXPECT_NEAR(best.log_prob, best.token_log_probs[0] + best.token_log_probs[1] + best.token_log_probs[2], 1e-6);
  EXPECT_NEAR(best.score, best.log_prob / 3, 1e-6);
}

/// A vocabulary whose b and d are line breaks, as byte pieces may spell them.
class WithLineBreaks : public OtherVocabulary {
 public:
  using OtherVocabulary::OtherVocabulary;
  std::string decode(std::span<const TokenId> ids) const override {
    std::string text = OtherVocabulary::decode(ids);
    std::replace(text.begin(), text.end(), 'b', '\n');
    std::replace(text.begin(), text.end(), 'd', '\r');
    return text;
  }
};

TEST(Translator, ATranslationIsOneLineWhateverItsPieces) {
  const VocabularyPtr vocabulary = std::make_shared<WithLineBreaks>(letters().tgt);
  ASSERT_EQ(vocabulary->decode(std::vector<TokenId>{3, 4, 6}), "a \n \r");
  const auto lines = Translator(copier(), {letters().src, vocabulary}, {beam_of(2)}).translate(lines_of({"a b c d e", "d b"}));
  EXPECT_EQ(best_texts(lines), (std::vector<std::string>{"a   c   e", "   "}));
}

TEST(TranslateLines, GivesTheBestTranslationOfEachLine) {
  const auto model = copier();
  const std::vector<std::string> texts = {"a b", "", "c"};
  EXPECT_EQ(translate_lines(*model, letters(), texts, beam_of(3, 3)), texts);
}

TEST(TranslateLines, DrawByTheirPlaceInTheInput) {
  const auto model = copier();
  TranslateOptions options = beam_of(1, 1);
  options.sampling = Sampling::kFull;
  options.temperature = 1000;  // next to all tokens alike
  const std::vector<std::string> lines = {"a b c d e", "a b c d e"}, both = translate_lines(*model, letters(), lines, options);
  EXPECT_NE(both[0], both[1]);
  EXPECT_EQ(translate_lines(*model, letters(), {lines[0]}, options), std::vector{both[0]});
}

}  // namespace
}  // namespace lacuna

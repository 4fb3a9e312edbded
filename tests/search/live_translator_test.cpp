#include "search/live_translator.h"

#include <algorithm>
#include <condition_variable>
#include <stdexcept>

#include "../text/other_vocabulary.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kLetters = 13;
constexpr int64_t kRoom = 1 << 20;

Vocabularies ten_letters() {
  const VocabularyPtr vocabulary = token_list_from_bytes("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "letters");
  return {vocabulary, vocabulary};
}

/// What lines are answered, in the order of the answers.
class Answers {
 public:
  LiveLine line(const std::string& text, const std::string& client = "one") {
    const auto on_done = [this](const TranslatedLine& translated, const std::string& error) {
      const std::lock_guard lock(mutex_);
      texts_.push_back(error.empty() ? translated.translations.front().text : error);
      lines_.push_back(translated);
      changed_.notify_all();
    };
    return {{text, "", 0}, 1, false, client, is_abandoned, on_done};
  }

  std::vector<std::string> texts(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return texts_.size() >= count; });
    return texts_;
  }
  std::vector<TranslatedLine> lines(size_t count) {
    texts(count);
    return lines_;
  }

  const std::shared_ptr<std::atomic<bool>> is_abandoned = std::make_shared<std::atomic<bool>>(false);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  std::vector<TranslatedLine> lines_;
};

/// A model that copies its source, a step at a time whenever the gate is open.
struct GatedCopier {
  std::mutex gate;
  std::atomic<bool> has_arrived = false;
  std::shared_ptr<ToyModel> model = std::make_shared<ToyModel>(kLetters, [this](const Tokens& src, const Tokens& tokens) {
    has_arrived = true;
    const std::lock_guard wait(gate);
    return says(Tokens(src.begin(), src.end() - 1), kLetters)(src, tokens);
  });

  /// Waits until a step has come to the gate: what it translates is in the batch then, and what follows waits.
  void wait_for_arrival() const {
    while (!has_arrived) std::this_thread::yield();
  }

  std::unique_ptr<LiveTranslator> translator(int64_t batch_tokens, int64_t room = kRoom) const {
    TranslateOptions options = beam_of(1);
    options.batch_tokens = batch_tokens;
    return std::make_unique<LiveTranslator>(Translator(model, ten_letters(), {options}), room);
  }
};

TEST(LiveTranslator, TranslatesWhatIsAdded) {
  GatedCopier copier;
  Answers answers;
  const auto translator = copier.translator(100);
  EXPECT_TRUE(translator->add({answers.line("a b"), answers.line(""), answers.line("c")}));
  std::vector<std::string> texts = answers.texts(3);
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(texts, (std::vector<std::string>{"", "a b", "c"}));
}

TEST(LiveTranslator, LetsClientsTakeTurns) {
  GatedCopier copier;
  Answers answers;
  const auto translator = copier.translator(1);
  std::unique_lock closed(copier.gate);
  translator->add({answers.line("a", "one"), answers.line("b", "one"), answers.line("c", "one"), answers.line("f", "one")});
  copier.wait_for_arrival();
  translator->add({answers.line("d", "two"), answers.line("e", "two")});
  closed.unlock();
  // The search has taken the b, for which its batch has no room yet, before the other client came.
  EXPECT_EQ(answers.texts(6), (std::vector<std::string>{"a", "b", "c", "d", "f", "e"}));
}

TEST(LiveTranslator, LetsGoWhatIsAbandoned) {
  GatedCopier copier;
  Answers left, stays;
  const auto translator = copier.translator(6);
  std::unique_lock closed(copier.gate);
  translator->add({left.line("a b c d e f g h i j")});
  copier.wait_for_arrival();
  translator->add({left.line("a"), stays.line("b")});
  *left.is_abandoned = true;
  translator->drop_abandoned();
  EXPECT_EQ(translator->load().waiting_lines, 1);
  closed.unlock();
  EXPECT_EQ(stays.texts(1), (std::vector<std::string>{"b"}));
  EXPECT_EQ(left.texts(2), (std::vector<std::string>{"abandoned", "abandoned"}));
  EXPECT_EQ(translator->load().abandoned_lines, 2);
  EXPECT_EQ(copier.model->steps, 1 + 2) << "the long line ends after the step that was being made";
}

TEST(LiveTranslator, TakesNoMoreThanMayWait) {
  GatedCopier copier;
  Answers answers;
  const auto translator = copier.translator(1, 8);
  std::unique_lock closed(copier.gate);
  EXPECT_TRUE(translator->add({answers.line("a")}));
  copier.wait_for_arrival();
  EXPECT_TRUE(translator->add({answers.line("b c d")}));
  EXPECT_FALSE(translator->add({answers.line("e f g")}));
  closed.unlock();
  answers.texts(2);
  EXPECT_TRUE(translator->add({answers.line("a b c d e f g")})) << "nothing waits, so a request of any size may";
}

TEST(LiveTranslator, GoesOnAfterAnError) {
  Answers answers;
  const auto model = std::make_shared<ToyModel>(kLetters, [](const Tokens& src, const Tokens& tokens) {
    if (src.front() == 3) throw std::runtime_error("an a");
    return says(Tokens(src.begin(), src.end() - 1), kLetters)(src, tokens);
  });
  LiveTranslator translator(Translator(model, ten_letters(), {beam_of(1)}), kRoom);
  translator.add({answers.line("a")});
  answers.texts(1);
  translator.add({answers.line("b")});
  EXPECT_EQ(answers.texts(2), (std::vector<std::string>{"an a", "b"}));
  EXPECT_EQ(translator.load().failed_lines, 1);
}

/// A copier for several threads that knows how many sentences were taken into a batch at once at most.
class CountingCopier : public ToyModel {
 public:
  CountingCopier() : ToyModel(kLetters, {}) {}
  bool is_thread_safe() const override { return true; }
  std::unique_ptr<DecoderCache> start(const std::vector<Tokens>& sources) override {
    const std::lock_guard lock(mutex_);
    most_ = std::max(most_, sources.size());
    return ToyModel::start(sources);
  }
  Logits step(const Tokens& tokens, DecoderCache& cache) override {
    const auto copy = [](const Tokens& src, const Tokens& so_far) {
      return says(Tokens(src.begin(), src.end() - 1), kLetters)(src, so_far);
    };
    return Logits(at::tensor(dynamic_cast<ToyCache&>(cache).step(tokens, copy)).view({-1, kLetters}));
  }
  size_t most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::mutex mutex_;
  size_t most_ = 0;
};

TEST(LiveTranslator, DividesLinesAmongThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const auto model = std::make_shared<CountingCopier>();
  Answers answers;
  {
    LiveTranslator translator(Translator(model, ten_letters(), {beam_of(1)}), kRoom);
    translator.add(std::vector(8, answers.line("a b c")));
    EXPECT_EQ(answers.texts(8), std::vector<std::string>(8, "a b c"));
  }
  EXPECT_LE(model->most(), 4U);
  at::set_num_threads(threads);
}

TEST(LiveTranslator, GivesEachLineAsManyTranslationsAsItWantsAndItsAlignment) {
  const auto model = std::make_shared<ToyModel>(kLetters, random_table(kLetters));
  const auto translated = [&](int64_t n_best) {
    return Translator(model, ten_letters(), {beam_of(4, n_best)}).translate({{"a b c", "", 0}}).front().translations;
  };
  Answers answers;
  LiveTranslator translator(Translator(model, ten_letters(), {beam_of(4), AlignmentLevel::kWord, 0}), kRoom);
  LiveLine one = answers.line("a b c"), three = answers.line("a b c");
  three.n_best = 3;
  three.is_aligned = true;
  translator.add({one, three});
  std::vector<TranslatedLine> lines = answers.lines(2);
  if (lines[0].translations.size() > 1) std::swap(lines[0], lines[1]);
  ASSERT_EQ(lines[0].translations.size(), 1U);
  EXPECT_EQ(lines[0].translations[0].text, translated(1)[0].text);
  EXPECT_TRUE(lines[0].translations[0].alignment.empty());
  ASSERT_EQ(lines[1].translations.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(lines[1].translations[i].text, translated(3)[i].text);
  EXPECT_FALSE(lines[1].translations[0].alignment.empty());
}

}  // namespace
}  // namespace lacuna

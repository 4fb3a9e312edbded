#include "data/corpus_cache.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path only_cache(const SmallCorpus& small) {
  for (const auto& entry : fs::directory_iterator(small.cache()))
    if (entry.is_directory()) return entry.path();
  return {};
}

/// All tokens of both sides, to compare.
std::vector<TokenId> contents(const TokenizedCorpus& corpus) {
  std::vector<TokenId> all;
  for (int64_t i = 0; i < corpus.size(); ++i) {
    all.insert(all.end(), corpus.src(i).begin(), corpus.src(i).end());
    all.insert(all.end(), corpus.tgt(i).begin(), corpus.tgt(i).end());
  }
  return all;
}

TEST(CorpusCache, IsUsedAgain) {
  const SmallCorpus small;
  small.open("w0\nw1\n", "w1\nw0\n");
  const auto made = fs::last_write_time(only_cache(small) / "src.ids");
  const auto again = small.open("w0\nw1\n", "w1\nw0\n");
  EXPECT_EQ(fs::last_write_time(only_cache(small) / "src.ids"), made);
  EXPECT_EQ(again->summary().src_tokens, 4);
  EXPECT_EQ(small.num_caches(), 1u);
}

TEST(CorpusCache, IsMadeAnewWhenTheTextChanges) {
  const SmallCorpus small;
  small.open("w0\nw1\n", "w1\nw0\n");
  const auto changed = small.open("w0\nw2\n", "w1\nw0\n");  // as many bytes
  EXPECT_EQ(changed->src(1)[0], 5);
  EXPECT_EQ(small.num_caches(), 2u);
}

TEST(CorpusCache, IsMadeAnewForAnotherVocabularyOrOtherOptions) {
  SmallCorpus small;
  small.open("w0\nw1\n", "w1\nw0\n");
  small.options.max_length = 5;
  small.open("w0\nw1\n", "w1\nw0\n");
  small.vocabularies.src = small.vocabularies.tgt = token_list_from_bytes("w1\nw0\n", "words");
  EXPECT_EQ(small.open("w0\nw1\n", "w1\nw0\n")->src(0)[0], 4);
  EXPECT_EQ(small.num_caches(), 3u);
}

TEST(CorpusCache, KeepsTheTextForSubwordSampling) {
  SmallCorpus small;
  small.options.spm_alpha = 0.1;
  const auto corpus = small.open("w0\n\nw1  w2\n", "w1\nw1\nw0\n");
  ASSERT_TRUE(corpus->has_text());
  EXPECT_EQ(corpus->src_text(1), "w1  w2");
  EXPECT_EQ(corpus->tgt_text(1), "w0");
}

TEST(CorpusCache, ThatIsDamagedIsMadeAnew) {
  const SmallCorpus small;
  const std::vector<TokenId> whole = contents(*small.open("w0\nw1\n", "w1\nw0\n"));
  for (const std::string file : {"src.ids", "tgt.offsets", "summary.json"}) {
    fs::resize_file(only_cache(small) / file, 5);
    EXPECT_EQ(contents(*small.open("w0\nw1\n", "w1\nw0\n")), whole) << file;
    fs::remove(only_cache(small) / file);
    EXPECT_EQ(contents(*small.open("w0\nw1\n", "w1\nw0\n")), whole) << file;
  }
}

TEST(CorpusCache, ThatCannotBeWrittenIsAnErrorThatNamesTheOption) {
  SmallCorpus small;
  small.folder.write("cache", "a file where the folder should be");
  EXPECT_THAT(message_of<MachineError>([&] { small.open("w0\n", "w0\n"); }), HasSubstr("data.cache"));
}

TEST(CorpusCache, OfAProcessThatWasKilledIsNeverUsed) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write(random_lines(30000, 1), random_lines(30000, 2));
  int killed = 0;
  for (int milliseconds = 1; milliseconds <= 64; milliseconds *= 2) {
    const pid_t child = fork();
    if (child == 0) {
      small.open(corpus);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(milliseconds * 1000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
  }
  EXPECT_GT(killed, 0);
  SmallCorpus fresh;
  EXPECT_EQ(contents(*small.open(corpus)), contents(*fresh.open(corpus)));
  EXPECT_EQ(small.num_caches(), 1u) << "what killed processes leave is removed";
}

TEST(CorpusCache, IsMadeOnceByManyAtATime) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write(random_lines(3000, 1), random_lines(3000, 2));
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(small.open(corpus)->size() == 3000 ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(small.num_caches(), 1u);
}

}  // namespace
}  // namespace lacuna

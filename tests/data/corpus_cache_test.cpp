#include "data/corpus_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../base/child.h"
#include "../text/other_vocabulary.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "data/batch_maker.h"
#include "data/corpus_reader.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
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

TEST(CorpusCache, OfTwoWholeFilesHasTheFingerprintOfTheirContents) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  EXPECT_EQ(small.open(corpus)->fingerprint(), hash_of_files({corpus.src, corpus.tgt})) << "by which caches of older programs are found";
}

TEST(CorpusCache, IsMadeAnewForOtherColumnsOrAnotherPrefix) {
  const SmallCorpus small;
  CorpusOptions corpus = small.write_tsv("w0\tw1\tw2\n");
  EXPECT_EQ(small.open(corpus)->tgt(0)[0], 4);
  corpus.columns = {1, 3};
  EXPECT_EQ(small.open(corpus)->tgt(0)[0], 5);
  corpus.src_prefix = "w4";
  EXPECT_EQ(small.open(corpus)->src(0)[0], 7);
  corpus.src_prefix = "w5";
  EXPECT_EQ(small.open(corpus)->src(0)[0], 8);
  EXPECT_EQ(small.num_caches(), 4u);
  small.open(corpus);
  EXPECT_EQ(small.num_caches(), 4u);
}

TEST(CorpusCache, KeepsTheTextForSubwordSampling) {
  SmallCorpus small;
  small.options.spm_alpha = 0.1;
  const auto corpus = small.open("w0\n\nw1  w2\n", "w1\nw1\nw0\n");
  ASSERT_TRUE(corpus->has_text());
  EXPECT_EQ(corpus->src_text(1), "w1  w2");
  EXPECT_EQ(corpus->tgt_text(1), "w0");
}

TEST(CorpusCache, KeepsThePrefixInThatText) {
  SmallCorpus small;
  small.options.spm_alpha = 0.1;
  CorpusOptions one = small.write_tsv("w0\tw1\n");
  one.src_prefix = "w4";
  EXPECT_EQ(small.open(one)->src_text(0), "w4 w0");
}

/// All lines of both sides, to compare; empty for a corpus that does not keep them.
std::string texts(const TokenizedCorpus& corpus) {
  std::string all;
  for (int64_t i = 0; corpus.has_text() && i < corpus.size(); ++i)
    all.append(corpus.src_text(i)).append("\t").append(corpus.tgt_text(i)).append("\n");
  return all;
}

/// Cuts, lengthens, changes and removes these files of a cache, one after another.
void expect_made_anew(const SmallCorpus& small, const std::vector<std::string>& files) {
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  const std::vector<TokenId> tokens = contents(*small.open(corpus));
  const std::string lines = texts(*small.open(corpus));
  const auto expect_whole = [&](const std::string& damage) {
    const auto again = small.open(corpus);
    EXPECT_EQ(contents(*again), tokens) << damage;
    EXPECT_EQ(texts(*again), lines) << damage;
  };
  for (const std::string& name : files) {
    const fs::path file = only_cache(small) / name;
    for (const uintmax_t size : {uintmax_t{0}, uintmax_t{1}, fs::file_size(file) - 1, fs::file_size(file) + 1}) {
      fs::resize_file(file, size);
      expect_whole(name + " of " + std::to_string(size) + " bytes");
    }
    fs::remove(file);
    expect_whole(name + " missing");
    const std::string whole = read_file(file);
    for (size_t place = 0; place < whole.size(); place += std::max<size_t>(1, whole.size() / 16)) {
      std::string damaged = whole;
      damaged[place] ^= 1;
      std::ofstream(file, std::ios::binary) << damaged;
      expect_whole(name + " with another byte " + std::to_string(place));
      EXPECT_EQ(bytes_of(file), whole) << name << ", byte " << place;
    }
  }
}

TEST(CorpusCache, ThatIsDamagedIsMadeAnew) {
  expect_made_anew(SmallCorpus(), {"src.ids", "src.offsets", "tgt.ids", "tgt.offsets", "summary.json"});
}

TEST(CorpusCache, WhoseSummaryCountsWhatCannotBeIsMadeAnew) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  const std::vector<TokenId> tokens = contents(*small.open(corpus));
  const fs::path cache = only_cache(small);
  for (const std::string kept : {"-1", "2305843009213693951", "9223372036854775807"}) {
    std::string summary = read_file(cache / "summary.json");
    summary.replace(summary.find("\"kept\": 2"), 9, "\"kept\": " + kept);
    std::ofstream(cache / "summary.json") << summary;
    for (const char* side : {"src", "tgt"}) fs::resize_file(cache / (side + std::string(".offsets")), 0);
    EXPECT_EQ(contents(*small.open(corpus)), tokens) << kept;
  }
}

/// Writes numbers into a file of the cache, and the hash that fits into its summary.
template <class T>
void forge(const fs::path& cache, const std::string& file, const std::vector<T>& numbers) {
  write_bytes(cache / file, {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)});
  nlohmann::json summary = nlohmann::json::parse(read_file(cache / "summary.json"));
  summary.erase("xxh3_128");
  ContentHash hash;
  hash.add(summary.dump());
  for (const char* part : {"src.ids", "src.offsets", "tgt.ids", "tgt.offsets"}) hash.add(read_file(cache / part));
  summary["xxh3_128"] = hash.text();
  write_bytes(cache / "summary.json", summary.dump());
}

TEST(CorpusCache, WithAHashThatFitsIsStillHeldAgainstItself) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  const std::vector<TokenId> tokens = contents(*small.open(corpus));
  const fs::path cache = only_cache(small);
  const auto expect_made_anew = [&](const std::string& file) {
    EXPECT_EQ(contents(*small.open(corpus)), tokens) << file;
    EXPECT_EQ(fs::file_size(cache / "src.ids"), 16u);
  };
  using Offsets = std::vector<uint64_t>;
  for (const Offsets& wrong : std::vector<Offsets>{{0, 2}, {0, 2, 1000}, {0, 5, 4}, {1, 2, 4}, {0, UINT64_MAX, 4}, {0, 2, 3, 4}}) {
    forge(cache, "src.offsets", wrong);
    expect_made_anew("src.offsets");
  }
  for (const TokenId wrong : {-1, 53, INT32_MAX}) {
    forge<TokenId>(cache, "tgt.ids", {3, wrong, 3, 2});
    expect_made_anew("tgt.ids");
  }
  forge<TokenId>(cache, "tgt.ids", {4, 2, 4, 2});
  EXPECT_NE(contents(*small.open(corpus)), tokens) << "what fits is taken";
}

TEST(CorpusCache, ThatIsCutShortOrReplacedInPlaceWhileItIsUsedChangesNothingThatWasRead) {
  const SmallCorpus small;
  const auto corpus = small.open("w0\nw1\n", "w1\nw0\n");
  const std::vector<TokenId> tokens = contents(*corpus);
  for (const char* file : {"src.ids", "src.offsets"}) fs::resize_file(only_cache(small) / file, 0);
  EXPECT_EQ(contents(*corpus), tokens);
  EXPECT_NO_THROW(corpus->require_unchanged());
}

TEST(CorpusCache, ThatIsLargeIsMappedAndABatchOfAChangedOneIsRefused) {
  SmallCorpus small;
  small.options.max_length = 5000;
  std::string line;
  for (int i = 0; i < 4499; ++i) line += "w1 ";
  std::string text;
  for (int i = 0; i < 1000; ++i) text += line + "w2\n";
  BatchPlan plan;
  plan.corpora = {small.open(text, text)};  // 18 MB of ids on each side
  plan.weights = {1};
  plan.batch_tokens = 10'000;
  Epoch epoch(plan, 0);
  EXPECT_NE(epoch.next(), nullptr);
  std::fstream ids(only_cache(small) / "src.ids", std::ios::binary | std::ios::in | std::ios::out);
  ids << "other ids" << std::flush;
  EXPECT_THAT(message_of<MachineError>([&] { epoch.next(); }), HasSubstr("/src.ids: it was written to while it was in use"));
}

TEST(CorpusCache, WithDamagedTextIsMadeAnew) {
  SmallCorpus small;
  small.options.spm_alpha = 0.1;
  expect_made_anew(small, {"src.text", "src.text_offsets", "tgt.text", "tgt.text_offsets"});
}

TEST(CorpusCache, WithoutAHashIsMadeAnew) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  const std::vector<TokenId> tokens = contents(*small.open(corpus));
  const fs::path file = only_cache(small) / "summary.json";
  const std::string whole = read_file(file);
  std::string old = whole;
  old.replace(old.find("xxh3_128"), 8, "another_");
  std::ofstream(file) << old;
  EXPECT_EQ(contents(*small.open(corpus)), tokens);
  EXPECT_EQ(bytes_of(file), whole);
}

/// Changes a text when it is asked for its bytes, which is after the text's hash is known and before its lines are read.
class ChangingVocabulary : public OtherVocabulary {
 public:
  ChangingVocabulary(VocabularyPtr one, std::string text, std::string bytes)
      : OtherVocabulary(std::move(one)), text_(std::move(text)), bytes_(std::move(bytes)) {}
  const std::string& serialized() const override {
    std::ofstream(text_, std::ios::binary) << bytes_;
    return OtherVocabulary::serialized();
  }

 private:
  std::string text_, bytes_;
};

TEST(CorpusCache, OfATextThatChangesWhileItIsReadIsNotKept) {
  for (const bool is_src : {true, false}) {
    SmallCorpus small;
    const VocabularyPtr words = small.vocabularies.src;
    const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
    small.vocabularies.src = std::make_shared<ChangingVocabulary>(words, is_src ? corpus.src : corpus.tgt, "w2\nw3\n");
    EXPECT_THAT(message_of<DataError>([&] { small.open(corpus); }),
                AllOf(HasSubstr(is_src ? corpus.src : corpus.tgt), HasSubstr("it changed while it was read; start again")));
    EXPECT_EQ(small.num_caches(), 0u);
    small.vocabularies.src = words;
    EXPECT_EQ(contents(*small.open("w0\nw1\n", "w1\nw0\n")), contents(*SmallCorpus().open("w0\nw1\n", "w1\nw0\n")));
  }
}

TEST(CorpusCache, OfOneFileThatChangesWhileItIsReadIsNotKept) {
  SmallCorpus small;
  const CorpusOptions corpus = small.write_tsv("w0\tw1\n");
  small.vocabularies.src = std::make_shared<ChangingVocabulary>(small.vocabularies.src, corpus.tsv, "w2\tw3\n");
  EXPECT_THAT(message_of<DataError>([&] { small.open(corpus); }), HasSubstr("train.tsv: it changed while it was read; start again"));
  EXPECT_EQ(small.num_caches(), 0u);
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
    const pid_t child = start_child([&] {
      small.open(corpus);
      return 0;
    });
    usleep(static_cast<useconds_t>(milliseconds * 1000));
    killed += kill_child(child) == kKilled ? 1 : 0;
  }
  EXPECT_GT(killed, 0);
  SmallCorpus fresh;
  EXPECT_EQ(contents(*small.open(corpus)), contents(*fresh.open(corpus)));
  EXPECT_EQ(small.num_caches(), 1u) << "what killed processes leave is removed";
}

TEST(CorpusCache, LeavesWhatElseIsInItsFolder) {
  const SmallCorpus small;
  const std::string hash(32, 'a');
  fs::create_directories(fs::path(small.cache()) / "my.unfinished.poem");
  const std::vector<std::string> others = {
      hash + ".unfinished",           hash + ".unfinished0123456",  hash + ".unfinished01234567.txt",
      "b" + hash + ".unfinished0123", hash + ".unfinished0123456x", "g" + hash.substr(1) + ".unfinished01234567"};
  for (const std::string& name : others) small.folder.write("cache/" + name, "text");
  const std::string leftover = small.folder.write("cache/" + hash + ".unfinished01234567", "of a process that was killed");
  small.open("w0\n", "w0\n");
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(fs::path(small.cache()) / name)) << name;
  EXPECT_TRUE(fs::exists(fs::path(small.cache()) / "my.unfinished.poem"));
  EXPECT_FALSE(fs::exists(leftover));
}

TEST(CorpusCache, IsMadeUnderALockThatBelongsToAnotherUser) {
  constexpr uid_t kNobody = 65534;
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\nw1\n", "w1\nw0\n");
  fs::create_directories(small.cache());
  const std::string lock = small.folder.write("cache/lock", "");
  fs::permissions(lock, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  for (const fs::path& folder : {small.folder.path(), fs::path(small.cache())}) fs::permissions(folder, fs::perms::all);
  EXPECT_EQ(exit_code_of_child([&] {
              if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 1;  // root may write to everything
              return small.open(corpus)->size() == 2 ? 0 : 2;
            }),
            0);
}

TEST(CorpusCache, ThatAnotherProcessMakesIsWaitedForUntilAnInterrupt) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write("w0\n", "w0\n");
  fs::create_directories(small.cache());
  const int lock = open(small.folder.write("cache/lock", "").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(exit_code_of_child([&] {
              handle_interrupts();
              signal(SIGALRM, [](int) { raise(SIGINT); });
              ualarm(200000, 900000);  // who does not heed the first one ends by the second
              const std::string message = message_of<Interrupted>([&] { small.open(corpus); });
              return message == "waiting for another process that is making a token cache in " + small.cache() + ": interrupted" ? 0 : 1;
            }),
            0);
  close(lock);
  EXPECT_EQ(small.num_caches(), 0u);
}

TEST(CorpusCache, OfALongTextCanBeInterruptedWhileItsLinesAreCounted) {
  const SmallCorpus small;
  std::string lines;
  for (int i = 0; i < 70000; ++i) lines += "w0\n";
  const CorpusOptions corpus = small.write(lines, lines);
  EXPECT_EQ(exit_code_of_child([&] {
              handle_interrupts();
              raise(SIGINT);
              return message_of<Interrupted>([&] { count_pairs(corpus); }) ==
                             "reading " + corpus.src + " and " + corpus.tgt + ": interrupted"
                         ? 0
                         : 1;
            }),
            0);
}

/// Interrupts its process at the first line that it is given.
class InterruptingVocabulary : public OtherVocabulary {
 public:
  using OtherVocabulary::OtherVocabulary;
  std::vector<TokenId> encode(std::string_view line) const override {
    if (!has_interrupted_.exchange(true)) raise(SIGINT);
    return OtherVocabulary::encode(line);
  }

 private:
  mutable std::atomic<bool> has_interrupted_ = false;
};

TEST(CorpusCache, ThatIsInterruptedLeavesNothing) {
  SmallCorpus small;
  const CorpusOptions corpus = small.write(random_lines(30000, 1), random_lines(30000, 2));
  small.vocabularies.src = std::make_shared<InterruptingVocabulary>(small.vocabularies.src);
  EXPECT_EQ(exit_code_of_child([&] {
              handle_interrupts();
              try {
                small.open(corpus);
              } catch (const Interrupted& error) {
                return std::string(error.what()) == "tokenizing " + corpus.files_text() + ": interrupted" ? error.exit_code() : 1;
              }
              return 0;
            }),
            130);
  EXPECT_EQ(small.num_caches(), 0u);
}

/// What tells one file from all that were there before it, even of its name.
std::string identity_of(const fs::path& file) {
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) return "missing";
  return fmt::format("{} {}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

TEST(CorpusCache, IsMadeOnceByManyAtATime) {
  const SmallCorpus small;
  const CorpusOptions corpus = small.write(random_lines(3000, 1), random_lines(3000, 2));
  std::vector<pid_t> children;
  for (const std::string name : {"seen.0", "seen.1", "seen.2", "seen.3"})
    children.push_back(start_child([&] {
      if (small.open(corpus)->size() != 3000) return 1;
      small.folder.write(name, identity_of(only_cache(small) / "summary.json"));
      return 0;
    }));
  for (const pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(small.num_caches(), 1u);
  for (const std::string name : {"seen.0", "seen.1", "seen.2", "seen.3"})
    EXPECT_EQ(bytes_of(small.folder / name), identity_of(only_cache(small) / "summary.json")) << name;
}

}  // namespace
}  // namespace lacuna

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cerrno>

#include "../base/system_calls.h"
#include "../text/sample_text.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "data/corpus_reader.h"
#include "data/training_data.h"
#include "small_corpus.h"

namespace lacuna {
namespace {

using ::testing::HasSubstr;

struct Prepared {
  ScratchFolder folder;
  DataOptions options;

  Prepared() {
    options.vocab_size = 70;
    CorpusOptions corpus;
    corpus.src = folder.write("train.de", sample_text(400, 1));
    corpus.tgt = folder.write("train.en", sample_text(400, 2));
    options.train = {corpus};
    std::filesystem::create_directory(run());
  }
  std::string run() const { return folder / "run"; }
  Vocabularies prepare() const { return prepare_vocabularies(options, run(), 1); }
};

TEST(Vocabularies, AreTrainedIntoTheRunFolderAndShared) {
  const Prepared prepared;
  const Vocabularies vocabularies = prepared.prepare();
  EXPECT_TRUE(vocabularies.shared());
  EXPECT_EQ(vocabularies.src->size(), 70);
  EXPECT_EQ(bytes_of(prepared.run() + "/spm.model"), vocabularies.src->serialized());
}

TEST(Vocabularies, KeepTargetsAsTheyAre) {
  Prepared prepared;
  for (const char* const side : {"train.de", "train.en"}) prepared.folder.write(side, sample_text(400) + "5 m²…\n");
  for (const bool is_shared : {true, false}) {
    prepared.options.shared_vocab = is_shared;
    const Vocabularies vocabularies = prepared.prepare();
    EXPECT_EQ(vocabularies.tgt->decode(vocabularies.tgt->encode("5 m²…")), "5 m²…");
  }
  prepared.options.tgt_normalization = "nfkc";
  const Vocabularies vocabularies = prepared.prepare();
  EXPECT_EQ(vocabularies.tgt->decode(vocabularies.tgt->encode("5 m²…")), "5 m2...");
}

TEST(Vocabularies, OfSourcesHaveNoInvisibleCharacters) {
  Prepared prepared;
  prepared.options.shared_vocab = false;
  prepared.folder.write("train.de", sample_text(400, 1) + "ha\u00ADus\u2060\n");
  prepared.folder.write("train.en", sample_text(400, 2) + "haus\n");
  const Vocabularies vocabularies = prepared.prepare();
  EXPECT_EQ(vocabularies.src->id_of("\u00AD"), kUnk);
  EXPECT_EQ(vocabularies.src->id_of("\u2060"), kUnk);
}

TEST(Vocabularies, MayBeOneForEachSide) {
  Prepared prepared;
  prepared.options.shared_vocab = false;
  const Vocabularies vocabularies = prepared.prepare();
  EXPECT_FALSE(vocabularies.shared());
  EXPECT_EQ(bytes_of(prepared.run() + "/spm.src.model"), vocabularies.src->serialized());
  EXPECT_EQ(bytes_of(prepared.run() + "/spm.tgt.model"), vocabularies.tgt->serialized());
  EXPECT_NE(vocabularies.src->serialized(), vocabularies.tgt->serialized());
}

/// The files of `prepared` as the columns of one.
CorpusOptions as_columns(const Prepared& prepared) {
  std::string rows, src, tgt;
  for (CorpusReader reader(prepared.options.train[0]); reader.next(src, tgt);) rows.append(src).append("\t").append(tgt).append("\n");
  return {.tsv = prepared.folder.write("train.tsv", rows)};
}

TEST(Vocabularies, OfColumnsAreThoseOfFiles) {
  for (const bool is_shared : {true, false}) {
    Prepared of_files, of_columns;
    of_columns.options.train = {as_columns(of_columns)};
    of_files.options.shared_vocab = of_columns.options.shared_vocab = is_shared;
    const Vocabularies expected = of_files.prepare(), found = of_columns.prepare();
    EXPECT_EQ(found.src->serialized(), expected.src->serialized());
    EXPECT_EQ(found.tgt->serialized(), expected.tgt->serialized());
  }
}

TEST(Vocabularies, OfAnEarlierStartWithOtherColumnsOrAnotherPrefixAreNot) {
  Prepared prepared;
  prepared.options.shared_vocab = false;
  prepared.options.tgt_normalization = prepared.options.src_normalization;
  prepared.options.train = {as_columns(prepared)};
  const Vocabularies before = prepared.prepare();
  prepared.options.train[0].columns = {2, 1};
  const Vocabularies turned = prepared.prepare();
  EXPECT_EQ(turned.src->serialized(), before.tgt->serialized());
  EXPECT_EQ(turned.tgt->serialized(), before.src->serialized());
  prepared.options.train[0].src_prefix = "@";
  const Vocabularies prefixed = prepared.prepare();
  EXPECT_EQ(turned.src->id_of("@"), kUnk);
  EXPECT_NE(prefixed.src->id_of("@"), kUnk);
  EXPECT_EQ(prefixed.tgt->serialized(), turned.tgt->serialized());
}

TEST(Vocabularies, AreNotTrainedForACoverageThatSentencePieceDoesNotTake) {
  Prepared prepared;
  prepared.options.character_coverage = 0.95;
  EXPECT_THAT(message_of<ConfigError>([&] { prepared.prepare(); }), HasSubstr("data.character_coverage is 0.95; expected 0.98 to 1"));
}

TEST(Vocabularies, OfAnEarlierStartAreUsedAgain) {
  const Prepared prepared;
  prepared.prepare();
  const auto made = std::filesystem::last_write_time(prepared.run() + "/spm.model");
  prepared.prepare();
  EXPECT_EQ(std::filesystem::last_write_time(prepared.run() + "/spm.model"), made);
}

TEST(Vocabularies, OfAnEarlierStartWithOtherSettingsAreNot) {
  Prepared prepared;
  prepared.prepare();
  prepared.options.vocab_size = 60;
  EXPECT_EQ(prepared.prepare().src->size(), 60);
  prepared.options.spm_symbols = {"<bt>"};
  EXPECT_NE(prepared.prepare().src->id_of("<bt>"), kUnk);
  prepared.options.vocab_size = 330;
  prepared.options.spm_byte_fallback = true;
  EXPECT_NE(prepared.prepare().src->id_of("<0x41>"), kUnk);
  prepared.options.spm_byte_fallback = false;
  EXPECT_LT(prepared.prepare().src->size(), 330) << "the text has not so many pieces without bytes";
}

TEST(Vocabularies, OfAnEarlierStartOnOtherTextAreNot) {
  const Prepared prepared, repaired;
  prepared.prepare();
  prepared.folder.write("train.de", sample_text(400, 3));
  repaired.folder.write("train.de", sample_text(400, 3));
  EXPECT_EQ(prepared.prepare().src->serialized(), repaired.prepare().src->serialized());
}

TEST(Vocabularies, OfAStartThatEndedBetweenNoteAndModelAreNot) {
  Prepared prepared;
  prepared.prepare();
  prepared.options.vocab_size = 60;
  {
    WatchedCalls watched(prepared.run());
    watched.error = [](const std::string& call) { return call.ends_with(" spm.model") ? EIO : 0; };  // after the note is written
    EXPECT_THROW(prepared.prepare(), MachineError);
  }
  EXPECT_EQ(prepared.prepare().src->size(), 60);
}

TEST(Vocabularies, PutIntoTheRunFolderOnPurposeAreUsed) {
  Prepared prepared, other;
  other.options.vocab_size = 60;
  const std::string model = other.prepare().src->serialized();
  prepared.prepare();
  write_file_atomically(prepared.run() + "/spm.model", model);
  EXPECT_EQ(prepared.prepare().src->serialized(), model);
}

TEST(Vocabularies, ThatAreNamedAreLoaded) {
  Prepared prepared, other;
  other.prepare();
  prepared.options.spm_model = other.run() + "/spm.model";
  EXPECT_TRUE(prepared.prepare().shared());
  EXPECT_TRUE(std::filesystem::is_empty(prepared.run()));
  prepared.options.spm_model = "";
  prepared.options.src_spm_model = prepared.options.tgt_spm_model = other.run() + "/spm.model";
  EXPECT_FALSE(prepared.prepare().shared());
}

TEST(Vocabularies, OfTokenisedTextAreLists) {
  Prepared prepared;
  prepared.options.tokenizer = Tokenizer::kNone;
  prepared.options.vocab = prepared.folder.write("vocab", "haus\nbaum\n");
  EXPECT_EQ(prepared.prepare().tgt->id_of("baum"), 4);
}

TEST(Vocabularies, ThatAreMissingAreAnError) {
  Prepared prepared;
  prepared.options.spm_model = "none.model";
  EXPECT_THAT(message_of<DataError>([&] { prepared.prepare(); }), HasSubstr("none.model"));
}

TEST(Vocabularies, AreNotTrainedOnAPipeThatNobodyCouldReadAgain) {
  Prepared prepared;
  prepared.options.train[0].src = prepared.folder / "pipe";
  ASSERT_EQ(mkfifo(prepared.options.train[0].src.c_str(), 0600), 0);
  EXPECT_THAT(message_of<DataError>([&] { prepared.prepare(); }), HasSubstr("read more than once"));
}

}  // namespace
}  // namespace lacuna

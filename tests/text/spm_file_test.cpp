#include "text/spm_file.h"

#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

#include <chrono>
#include <limits>
#include <map>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "base/random.h"
#include "sample_text.h"
#include "text/spm_fields.h"
#include "text/spm_trainer.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kNothing = 1U << 31;  // a value, which no byte leads to

/// A trie in which each node has a block of units for its children; unit i of a node's block is the child of byte i, unit 0 its value.
struct Trie {
  std::vector<uint32_t> units = std::vector<uint32_t>(256, kNothing);
  std::string replacements;
  uint32_t num_blocks = 1;  // the root's children are in block 1

  Trie() { set_children(0, new_block(), 0); }
  uint32_t new_block() {
    units.resize(units.size() + 256, kNothing);
    return 256 * num_blocks++;
  }
  void set_children(uint32_t unit, uint32_t block, uint32_t label) { units[unit] = (unit ^ block) << 10 | label; }
  /// Returns the block of the children of the child of `block` by this byte, which has a value if `replacement` is not null.
  uint32_t add(uint32_t block, unsigned char byte, const char* replacement = nullptr) {
    const uint32_t below = new_block();
    set_children(block + byte, below, byte);
    if (replacement == nullptr) return below;
    units[block + byte] |= 1U << 8;
    units[below] = 1U << 31 | static_cast<uint32_t>(replacements.size());
    replacements += std::string(replacement) + '\0';
    return below;
  }
  std::string bytes() const {
    const auto length = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) +
           std::string(reinterpret_cast<const char*>(units.data()), length) + replacements;
  }
};

std::string error_of(const std::string& bytes) {
  return message_of<DataError>([&] { CharacterRules(bytes, "model"); });
}
std::string error_of(const Trie& trie) {
  return error_of(trie.bytes());
}

TEST(SpmFields, SayWhatIsWrongWithTheRest) {
  const auto trouble = [](std::string_view message) {
    SpmFields fields(message);
    while (fields.next()) {
    }
    return fields.trouble();
  };
  EXPECT_EQ(trouble(""), "");
  EXPECT_EQ(trouble("\x0A\x02"
                    "ab\x10\x07"),
            "");
  EXPECT_EQ(trouble("\x0A\x03"
                    "ab"),
            "it is cut short");
  EXPECT_EQ(trouble("\x10\x87"), "it is cut short");
  EXPECT_EQ(trouble("\x0B"), "it has a field of an unknown kind");
  EXPECT_EQ(trouble(std::string(10, '\xFF')), "it has a number of more than 64 bits");
}

TEST(CharacterRules, FindTheLongest) {
  Trie trie;
  const uint32_t a = trie.add(256, 'a', "x");
  trie.add(trie.add(a, 'b'), 'c', "yz");
  const CharacterRules rules(trie.bytes(), "model");
  const auto found = [&](std::string_view text) {
    const auto match = rules.longest(text);
    return std::pair(match.length, std::string(match.replacement));
  };
  EXPECT_EQ(found("ab"), std::pair(size_t{1}, std::string("x")));
  EXPECT_EQ(found("abcd"), std::pair(size_t{3}, std::string("yz")));
  EXPECT_EQ(found("b").first, 0u);
  EXPECT_EQ(found("").first, 0u);
  EXPECT_EQ(CharacterRules("", "model").longest("a").length, 0u);
}

TEST(CharacterRules, ThatAreNotWholeAreRefused) {
  Trie trie;
  trie.add(256, 'a', "x");
  const std::string whole = trie.bytes();
  EXPECT_NO_THROW(CharacterRules(whole, "model"));
  for (const size_t size : {size_t{1}, size_t{4}, size_t{100}, whole.size() - 2, whole.size() - 1})
    EXPECT_THAT(error_of(whole.substr(0, size)), HasSubstr("model: is not a SentencePiece model")) << size;
  EXPECT_THAT(error_of(whole + "x"), HasSubstr("cut short")) << "the last replacement has no end";
}

TEST(CharacterRules, ThatLeadOutOfTheirBytesAreRefused) {
  Trie trie;
  trie.add(256, 'a', "x");
  for (const uint32_t unit : {0u, 256u + 'a', 256u + 'q'}) {
    Trie wrong = trie;
    wrong.units[unit] = 0x7FFFFFFF;
    EXPECT_THAT(error_of(wrong), HasSubstr("leads out of itself")) << unit;
  }
  Trie wrong = trie;
  wrong.units[512] = 1U << 31 | 2;  // behind the NUL
  EXPECT_THAT(error_of(wrong), HasSubstr("leads out of itself"));
  std::string ones = trie.bytes();
  std::fill(ones.begin() + 4, ones.end() - 2, '\xff');
  EXPECT_THAT(error_of(ones), HasSubstr("leads out of itself"));
}

TEST(CharacterRules, WithoutAnEndAreRefused) {
  Trie circle;
  circle.set_children(256 + 'a', 256, 'a');
  circle.replacements = std::string(1, '\0');
  EXPECT_THAT(error_of(circle), HasSubstr("has no end"));
  for (const int rules : {32, 33}) {
    Trie deep;
    uint32_t block = 256;
    for (int i = 0; i < rules; ++i) block = deep.add(block, 'a', "x");
    if (rules == 32)
      EXPECT_NO_THROW(CharacterRules(deep.bytes(), "model"));
    else
      EXPECT_THAT(error_of(deep), HasSubstr("too many rules for one text"));
  }
}

TEST(CharacterRules, ThatReplaceByWhatIsNoShortTextAreRefused) {
  for (const std::string& text : {std::string(257, 'x'), std::string("\xff"), std::string("\xe2\x82")}) {
    Trie trie;
    trie.add(256, 'a', text.c_str());
    EXPECT_THAT(error_of(trie), HasSubstr("no short text"));
  }
}

/// A field of a protobuf message, of bytes.
std::string field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) text += static_cast<char>(size | 0x80);
  return text + static_cast<char>(size) + bytes;
}
std::string piece(const std::string& text, float score = -1) {
  return field(1, field(1, text) + std::string("\x15") + std::string(reinterpret_cast<const char*>(&score), sizeof score));
}

TEST(SpmFile, OfPiecesThatAreNoWordsIsRefused) {
  EXPECT_NO_THROW(SpmFile(piece("a") + piece(std::string(1000, 'a')), "model"));
  for (const std::string& wrong : {piece(""), piece(std::string(1001, 'a')), piece("\xff"), piece(std::string("a\0b", 3)), field(1, "")})
    EXPECT_THAT(message_of<DataError>([&] { SpmFile(piece("a") + wrong, "model"); }), HasSubstr("a piece that is no text"));
  for (const float score : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
    EXPECT_THAT(message_of<DataError>([&] { SpmFile(piece("a", score), "model"); }), HasSubstr("score is no number"));
}

TEST(SpmFile, ThatIsNoMessageIsRefused) {
  const std::string rules = field(3, field(2, "x"));
  for (const std::string& wrong :
       {std::string(), std::string("\x0a\x7f"), std::string("\x0b"), std::string(20, '\xff'), std::string("text\n"), piece("a") + rules})
    EXPECT_THAT(message_of<DataError>([&] { SpmFile(wrong, "model"); }), HasSubstr("model: is not a SentencePiece model")) << wrong;
}

std::string model_of(SubwordType type, const std::vector<std::string>& symbols = {}, bool byte_fallback = false) {
  const ScratchFolder folder;
  DataOptions options;
  options.vocab_size = byte_fallback ? 350 : 90;
  options.spm_type = type;
  options.spm_symbols = symbols;
  options.spm_byte_fallback = byte_fallback;
  return train_sentencepiece({folder.write("text", sample_text())}, options);
}

TEST(SpmFile, WhatTheLibraryThrowsIsADataError) {
  std::string model = model_of(SubwordType::kUnigram);
  const size_t at = model.find("\x0a\x01h");
  ASSERT_NE(at, std::string::npos);
  model[at + 2] = '\0';
  sentencepiece::SentencePieceProcessor processor;
  EXPECT_THAT(message_of<DataError>([&] { load_spm(processor, model, "a/b.model"); }),
              HasSubstr("a/b.model: is not a SentencePiece model"));
}

/// A line of words, characters that no piece has, marks that combine with what is before, spaces, and characters that vanish, in runs.
std::string junk(uint64_t seed, size_t bytes) {
  constexpr std::string_view kParts[] = {"haus", "a",      "e\u0301", " ",      "~",      "ж",      "и\u0306", "\u0306",
                                         "温",   "\u00ad", "\u200b",  "\u3000", "<sym>",  "\u0308", "ﬁ",       "…",
                                         "🙂", "\u2581", "\u0301",  "ㄱ",     "\u1100", "\u1161", "\u09c7",  "\u09be"};
  RandomStream random(seed);
  std::string line;
  while (line.size() < bytes) {
    const size_t first = random.next_below(std::size(kParts)), second = random.next_below(std::size(kParts));
    for (uint64_t n = random.next_below(3) == 0 ? random.next_below(200) : 1; n > 0; --n)
      line += kParts[random.next_below(4) == 0 ? second : first];
  }
  return line;
}

TEST(SpmFile, AShortenedLineHasTheTokensOfTheWholeOne) {
  size_t num_shorter = 0;
  for (const SubwordType type : {SubwordType::kUnigram, SubwordType::kBpe})
    for (const auto& symbols : {std::vector<std::string>(), std::vector<std::string>{"<sym>"}}) {
      const std::string model = model_of(type, symbols);
      const SpmFile file(model, "model");
      sentencepiece::SentencePieceProcessor processor;
      ASSERT_TRUE(processor.LoadFromSerializedProto(model).ok());
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const std::string line = junk(seed, 5000);
        const ShortenedLine shorter = file.shortened(line);
        num_shorter += shorter.text.size() < line.size() ? 1 : 0;
        std::vector<int> expected, found;
        processor.Encode(line, &expected).IgnoreError();
        processor.Encode(shorter.text, &found).IgnoreError();
        EXPECT_EQ(found, expected) << "seed " << seed;
        EXPECT_EQ(shorter.place_in_line(shorter.text.size()), line.size());
      }
    }
  EXPECT_GT(num_shorter, 200u);
}

TEST(SpmFile, ShortLinesAndLinesThatAreSpelledInBytesStayWhole) {
  const std::string line(8000, '~');
  EXPECT_EQ(SpmFile(model_of(SubwordType::kBpe, {}, true), "model").shortened(line).text, line);
  const SpmFile file(model_of(SubwordType::kBpe), "model");
  EXPECT_EQ(file.shortened(line).text, "~~");
  EXPECT_EQ(file.shortened(line.substr(0, 4096)).text.size(), 4096u);
  EXPECT_EQ(file.shortened(line + "\xff").text.size(), 8001u);
}

TEST(SpmFile, PlacesOfAShortenedLineAreThoseOfTheWholeOne) {
  const SpmFile file(model_of(SubwordType::kBpe), "model");
  const std::string line = "haus " + std::string(5000, '~') + " haus " + std::string(3000, '~') + " baum";
  const ShortenedLine shorter = file.shortened(line);
  EXPECT_EQ(shorter.text, "haus ~~ haus ~~ baum");
  for (const std::string word : {"haus", "baum"})
    EXPECT_EQ(line.substr(shorter.place_in_line(shorter.text.rfind(word)), word.size()), word);
  EXPECT_EQ(shorter.place_in_line(5), 5u);
  EXPECT_EQ(shorter.place_in_line(8), line.find(" haus") + 1);
}

TEST(SpmFile, ALineOfAMegabyteOfUnknownCharactersTakesNoMinute) {
  for (const SubwordType type : {SubwordType::kUnigram, SubwordType::kBpe}) {
    const VocabularyPtr vocabulary = sentencepiece_from_bytes(model_of(type), "model");
    for (const std::string part : {"~", "ж", "жи", "\u0306", "~\u00ad"}) {
      std::string line;
      while (line.size() < (1 << 20)) line += part;
      const auto start = std::chrono::steady_clock::now();
      const std::vector<TokenId> ids = vocabulary->encode(line);
      EXPECT_LE(ids.size(), 2u) << part;
      EXPECT_EQ(vocabulary->words_of(line, ids), std::vector<int32_t>(ids.size(), 0)) << part;
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << part;
    }
  }
}

}  // namespace
}  // namespace lacuna

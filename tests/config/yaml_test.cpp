#include "config/yaml.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/random.h"
#include "config/load.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of_yaml(const std::string& yaml) {
  return message_of<ConfigError>([&] { parse_yaml(yaml, "c.yaml"); });
}

TEST(Yaml, RemembersTheLineOfEachKey) {
  const ConfigNode tree = parse_yaml("a: 1\nb:\n  c: x\n  d:\n", "c.yaml");
  EXPECT_EQ(tree.find("a")->place().text(), "c.yaml:1");
  EXPECT_EQ(tree.find("b")->place().text(), "c.yaml:2");
  EXPECT_EQ(tree.find("b")->find("c")->place().text(), "c.yaml:3");
  EXPECT_EQ(tree.find("b")->find("d")->place().text(), "c.yaml:4");
}

TEST(Yaml, TellsTextFromNothing) {
  const ConfigNode tree = parse_yaml("a: ''\nb: ~\nc: '~'\n", "c.yaml");
  EXPECT_TRUE(tree.find("a")->is_scalar());
  EXPECT_TRUE(tree.find("b")->is_null());
  EXPECT_TRUE(tree.find("c")->is_scalar());
}

TEST(Yaml, NamesBothLinesOfAKeyThatIsThereTwice) {
  EXPECT_THAT(error_of_yaml("train:\n  lr: 1\n\n  lr: 2\n"), AllOf(StartsWith("c.yaml:4: key \"lr\""), HasSubstr("first in line 2")));
}

TEST(Yaml, NamesTheLineOfWhatIsNoYaml) {
  EXPECT_THAT(error_of_yaml("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("c.yaml:3: not YAML"));
  EXPECT_THAT(error_of_yaml("a: *nowhere\n"), StartsWith("c.yaml:1: not YAML"));
}

TEST(Yaml, NamesTheLineOfAQuoteThatIsNeverClosed) {
  for (const std::string quote : {"'", "\""}) {
    for (const std::string end : {"", "\n", "\nseed: 2\n", "  # it is late\n"})
      EXPECT_THAT(error_of_yaml("a: 1\nrun: " + quote + "x" + end),
                  StartsWith("c.yaml:2: not YAML: a quote is opened here and never closed"));
    EXPECT_THAT(error_of_yaml("data:\n  train:\n    - " + quote + "x\nseed: 2\n"),
                StartsWith("c.yaml:3: not YAML: a quote is opened here"));
    EXPECT_THAT(message_of<ConfigError>([&] { parse_yaml_value(quote + "x\n", "command line (--run)"); }),
                StartsWith("command line (--run): not YAML: a quote is opened here"));
  }
}

TEST(Yaml, TakesQuotesThatOpenNothing) {
  EXPECT_EQ(parse_yaml("a: it's\n# it's\nb: 'it''s'\n", "c.yaml").find("b")->text(), "it's");
  EXPECT_EQ(parse_yaml("a: |\n  'x\n", "c.yaml").find("a")->text(), "'x\n");
}

TEST(Yaml, RefusesControlCharacters) {
  for (const char control : {'\0', '\x01', '\x04', '\x1b'})
    for (const std::string before : {"", "'", "\"", "# ", "\n"})
      EXPECT_THAT(
          error_of_yaml("seed: 1\nrun:" + before + "a" + control + "b\nlr: 2\n"),
          AllOf(StartsWith(before == "\n" ? "c.yaml:3: byte 2" : "c.yaml:2: byte "), HasSubstr("is a control character; expected")));
  EXPECT_THAT(error_of_yaml(std::string("s\0e\0e\0d\0:\0 \x00\x33\0", 14)),
              StartsWith("c.yaml:1: byte 2 is a control character"));  // UTF-16
  EXPECT_EQ(parse_yaml("a: \"\\e\\x04\"\n", "c.yaml").find("a")->text(), "\x1b\x04");
}

TEST(Yaml, RefusesCarriageReturnsInsideLines) {
  EXPECT_THAT(error_of_yaml("seed: 1\rrun: r\r"),
              StartsWith("c.yaml:1: byte 8 is a carriage return; expected lines that end in LF or CR LF"));
  EXPECT_THAT(error_of_yaml("seed: 1\r\nrun: r\r"), StartsWith("c.yaml:2: byte 7 is a carriage return"));
}

TEST(Yaml, RefusesNuls) {
  for (const char* text : {"a: 1\nb: \"x\\0\"\n", "a: 1\nb: [\"\\x00\"]\n", "a: 1\n\"\\u0000\": 1\n"})
    EXPECT_THAT(error_of_yaml(text), StartsWith("c.yaml:2: \\0 stands for a NUL; expected")) << text;
}

TEST(Yaml, RefusesKeysThatAreNotWords) {
  EXPECT_THAT(error_of_yaml("[1, 2]: x\n"), HasSubstr("c.yaml:1: a key must be a word"));
}

TEST(Yaml, RefusesSeveralDocuments) {
  EXPECT_THAT(error_of_yaml("a: 1\n---\nb: 2\n"), StartsWith("c.yaml:2: a second YAML document"));
  EXPECT_THAT(error_of_yaml("a: 1\n...\n---\nb: 2\n"), StartsWith("c.yaml:3: a second YAML document"));
  EXPECT_THAT(error_of_yaml("{a: 1}\nb: 2\n"), StartsWith("c.yaml:2: "));
}

TEST(Yaml, SaysWhereADocumentHasEndedEarly) {
  EXPECT_THAT(error_of_yaml("  train:\n    lr: 1e-3\nseed: 77\n"),
              AllOf(StartsWith("c.yaml:3: "), HasSubstr("indent the keys of a map alike")));
}

TEST(Yaml, TakesOneDocumentBetweenMarkers) {
  for (const char* text : {"---\nseed: 3\n", "  # a comment\n---\nseed: 3\n", "\xEF\xBB\xBF# after a byte order mark\n---\nseed: 3\n...\n"})
    EXPECT_EQ(parse_yaml(text, "c.yaml").find("seed")->text(), "3") << text;
}

TEST(YamlValue, IsOne) {
  for (const char* text : {"[a, b], [c]", "{src: a, tgt: b}, {src: c, tgt: d}", "\",\" \".\""})
    EXPECT_THAT(message_of<ConfigError>([&] { parse_yaml_value(text, "command line (--x)"); }), StartsWith("command line (--x): ")) << text;
  EXPECT_EQ(parse_yaml_value("a, b", "command line (--x)").text(), "a, b");
}

TEST(Yaml, BoundsDepthAndSize) {
  EXPECT_THAT(error_of_yaml("a: " + std::string(100, '[') + std::string(100, ']')), HasSubstr("levels deep"));
  EXPECT_THAT(error_of_yaml("a: " + std::string(5000, '[')), HasSubstr("c.yaml"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string below = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + below + ", " + below + ", " + below + ", " + below + ", " + below + ", " + below + "]\n";
  }
  EXPECT_THAT(error_of_yaml(bomb), HasSubstr("more than 100000 values"));
}

TEST(Yaml, BoundsTheKeysOfAMap) {
  std::string yaml = "a:\n";
  for (int i = 0; i < 1000; ++i) yaml += "  k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(parse_yaml(yaml, "c.yaml").find("a")->entries().size(), 1000u);
  EXPECT_THAT(error_of_yaml(yaml + "  more: 1\nb: 1\n"), StartsWith("c.yaml:1002: a map of more than 1000 keys; expected"));
  for (int i = 1000; i < 99000; ++i) yaml += "  k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(error_of_yaml(yaml), StartsWith("c.yaml:1002: a map of more than 1000 keys; expected"));
}

TEST(Yaml, TakesLongLists) {
  std::string symbols = "data:\n  spm_symbols:\n";
  for (int i = 0; i < 5000; ++i) symbols += "  - <s" + std::to_string(i) + ">\n";
  EXPECT_EQ(options_from_yaml(symbols, "c.yaml").data.spm_symbols.size(), 5000u);
}

TEST(YamlFile, ThatIsMissingAFolderOrTooLargeIsAnError) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<ConfigError>([&] { read_yaml_file(folder / "none.yaml"); }), HasSubstr("no such configuration file"));
  EXPECT_THAT(message_of<ConfigError>([&] { read_yaml_file(folder.path().string()); }), HasSubstr("is a folder"));
  const std::string large = folder.write("large.yaml", std::string((16 << 20) + 1, '#'));
  EXPECT_THAT(message_of<ConfigError>([&] { read_yaml_file(large); }), HasSubstr("larger than 16 MB"));
}

/// A pipe into which `text` is written.
class Pipe {
 public:
  explicit Pipe(const std::string& text) {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    writer_ = start_child([&] {
      folder_.write("pipe", text);
      return 0;
    });
  }
  ~Pipe() { kill_child(writer_); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  std::string path() const { return folder_ / "pipe"; }

 private:
  ScratchFolder folder_;
  pid_t writer_ = 0;
};

TEST(YamlFile, MayBeAPipe) {
  EXPECT_EQ(read_yaml_file(Pipe("run: r\n").path()).find("run")->text(), "r");
}

TEST(YamlFile, IsReadNoFurtherThanAConfigurationGoes) {
  EXPECT_THAT(message_of<ConfigError>([] { read_yaml_file(Pipe(std::string((16 << 20) + 1, '#')).path()); }),
              HasSubstr("larger than 16 MB"));
  EXPECT_NO_THROW(read_yaml_file(Pipe(std::string(16 << 20, '#')).path()));
}

TEST(YamlFile, MayBeEmptyAndHaveCrLfAndAByteOrderMark) {
  const ScratchFolder folder;
  EXPECT_TRUE(read_yaml_file(folder.write("empty.yaml", "")).is_null());
  EXPECT_EQ(read_yaml_file(folder.write("dos.yaml", "\xEF\xBB\xBFseed: 3\r\nrun: r\r\n")).find("run")->text(), "r");
}

/// Reads options from the text; nothing but a ConfigError may come of it.
void read_anything(const std::string& yaml) {
  try {
    options_from_yaml(yaml, "c.yaml");
  } catch (const ConfigError&) {
  }
}

TEST(Yaml, CutShortAnywhereIsAConfigurationOrAConfigError) {
  const std::string yaml = bytes_of(LACUNA_SOURCE_DIR "/configs/multi30k_de_en/small.yaml");
  ASSERT_FALSE(yaml.empty());
  for (size_t size = 0; size < yaml.size(); ++size) EXPECT_NO_THROW(read_anything(yaml.substr(0, size))) << size;
}

TEST(Yaml, WithAnyBytesChangedIsAConfigurationOrAConfigError) {
  const std::string yaml = bytes_of(LACUNA_SOURCE_DIR "/configs/multi30k_de_en/small.yaml");
  RandomStream random(1);
  for (int trial = 0; trial < 1000; ++trial) {
    std::string damaged = yaml;
    for (uint64_t i = 0; i <= random.next_below(4); ++i) {
      const char special[] = ":-[]{}#&*!|>'\"%@`?,\n\t\0 \xC3\xFF";
      damaged[random.next_below(damaged.size())] = special[random.next_below(sizeof special)];
    }
    EXPECT_NO_THROW(read_anything(damaged)) << damaged;
  }
}

}  // namespace
}  // namespace lacuna

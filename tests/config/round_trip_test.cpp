#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "config/load.h"

namespace lacuna {
namespace {

const char* const kAwkward[] = {"1",     "1e5", "0x1",  "true",    "no",     "null",   "~",       "",           "a: b",   "a #b",
                                "# a",   "- a", "[a",   "{a}",     "'",      "\"",     "a\\b",    " lead",      "trail ", "two\nlines",
                                "tab\t", "&a",  "*a",   "!a",      "%a",     "@a",     "`a",      "|",          ">",      "?",
                                "---",   "...", "a,b",  "ü",       "日本語", "\u2581", "${HOME}", "\u2028line", "\x01",   "=",
                                "<<",    "\r",  "a\rb", "a\r\n b", "\x1b",   "\x04 a", "\x7f",    "a\u0085 b",  "\uFEFFa"};

TEST(RoundTrip, OfTheDefaultsIsExact) {
  const std::string yaml = to_yaml(Options());
  EXPECT_EQ(to_yaml(options_from_yaml(yaml, "c.yaml")), yaml);
}

TEST(RoundTrip, KeepsAnyText) {
  for (const char* text : kAwkward) {
    Options options;
    options.run = text;
    options.translate.block_tokens = {text, "x", text};
    options.data.train = {{.name = text, .src = "s", .tgt = "t"}};
    const Options back = options_from_yaml(to_yaml(options), "c.yaml");
    EXPECT_EQ(back.run, text);
    EXPECT_EQ(back.translate.block_tokens, options.translate.block_tokens) << text;
    EXPECT_EQ(back.data.train[0].name, text);
  }
}

TEST(RoundTrip, KeepsNumbersExactly) {
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e-9, 123456789.125}) {
    Options options;
    options.train.lr = value;
    EXPECT_EQ(options_from_yaml(to_yaml(options), "c.yaml").train.lr, value);
  }
  Options options;
  options.seed = INT64_MAX;
  EXPECT_EQ(options_from_yaml(to_yaml(options), "c.yaml").seed, INT64_MAX);
}

TEST(RoundTrip, OfAFullConfigurationIsExact) {
  const Options options = options_from_yaml(
      "run: r\nseed: 3\ndata: {train: [{src: a, tgt: b, weight: 0.5}, {src: c, tgt: d, name: n}, {tsv: g, columns: [3, 1],\n"
      "  src_prefix: '<bt> #1'}], valid: {src: e, tgt: f}, long: crop}\n"
      "model: {preset: big, d_ff: 100, attention: {default: rela, cross: {default: {type: topk, k: 8}, layers: {0: softmax}}}}\n"
      "train: {batch_tokens: auto, schedule: noam, init_from: x, reset: [lr, data]}\ntranslate: {sampling: top_k, block_tokens: [a, b]}\n",
      "c.yaml");
  const std::string yaml = to_yaml(options);
  const Options back = options_from_yaml(yaml, "c.yaml");
  EXPECT_EQ(to_yaml(back), yaml);
  EXPECT_EQ(back.model.d_model, 1024);
  EXPECT_EQ(back.data.train[2].columns, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(back.data.train[2].src_prefix, "<bt> #1");
  EXPECT_EQ(back.model.d_ff, 100);
  EXPECT_EQ(back.model.attention.to_yaml(), options.model.attention.to_yaml());
  EXPECT_FALSE(back.train.batch_tokens.value);
}

/// The options of a file without the variants that only `lacuna ablate` reads.
Options load_shared(const std::string& file) {
  ConfigNode tree = load_config_tree({{file}, {}});
  tree.erase("variants");
  return options_from(tree);
}

TEST(Configs, EveryFileLoads) {
  int num_files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LACUNA_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++num_files;
    Options options;
    EXPECT_NO_THROW(options = load_shared(entry.path().string())) << entry.path();
    EXPECT_EQ(to_yaml(options_from_yaml(to_yaml(options), "c.yaml")), to_yaml(options)) << entry.path();
  }
  EXPECT_GT(num_files, 0);
}

}  // namespace
}  // namespace lacuna

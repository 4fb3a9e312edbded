#include "base/line_reader.h"
#include "base/output.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "config/on_bad_line.h"
#include "document/sentence_splitter.h"

namespace lacuna {
namespace {

/// Writes the sentences of each line. Returns the number of lines that were passed over; nothing if nobody reads the output any more.
std::optional<int64_t> write_sentences(LineReader& reader, Output& output, const document::SentenceSplitter& splitter,
                                       OnBadLine bad_lines) {
  int64_t passed_over = 0;
  for (std::string line; next_good_line(reader, line, bad_lines, passed_over);) {
    std::string written;
    for (const document::Span sentence : splitter.sentences(line)) written.append(sentence.of(line)).append("\n");
    if (!output.write(written)) return {};
  }
  return passed_over;
}

int run_split(const std::vector<std::string>& arguments) {
  CommandLine app("Splits text into sentences, as `lacuna translate --split` does: one a line.", "lacuna split");
  std::string input = "-", output = "-", language;
  OnBadLine bad_lines = OnBadLine::kStop;
  app.add_option("-i,--input", input, "Text, plain, gzip or zstd; each line ends its last sentence; - is standard input")
      ->type_name("FILE");
  flags::add_output(app, output, "File for the sentences, packed if its name ends in .gz or .zst");
  app.add_option("--language", language, "Code of the text's language (de); rules of all languages hold unless given")->type_name("CODE");
  flags::add_on_error(app, bad_lines, "it is left out");
  if (!app.read(arguments)) return 0;
  if (const std::string error = language_code_error(language); !error.empty())
    throw UsageError("--language is \"" + language + "\"" + error);
  const document::SentenceSplitter splitter(language);
  LineReader reader(input);
  Output sentences(output, {input});
  const std::optional<int64_t> passed_over = write_sentences(reader, sentences, splitter, bad_lines);
  if (!passed_over) return kBrokenPipe;
  sentences.finish();
  flags::require_none_passed_over(*passed_over, reader.line_number());
  return 0;
}

}  // namespace

Verb split_verb() {
  return {"split", "split text into sentences, one a line", run_split};
}

}  // namespace lacuna

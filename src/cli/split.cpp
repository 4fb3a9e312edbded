#include "base/line_reader.h"
#include "base/output.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "document/sentence_splitter.h"

namespace lacuna {
namespace {

int run_split(const std::vector<std::string>& arguments) {
  CommandLine app("Splits text into sentences, as `lacuna translate --split` does: one a line.", "lacuna split");
  std::string input = "-", output = "-", language;
  app.add_option("-i,--input", input, "Text, plain, gzip or zstd; each line ends its last sentence; - is standard input")
      ->type_name("FILE");
  flags::add_output(app, output, "File for the sentences, packed if its name ends in .gz or .zst");
  app.add_option("--language", language, "Code of the text's language (de); rules of all languages hold unless given")->type_name("CODE");
  if (!app.read(arguments)) return 0;
  if (const std::string error = language_code_error(language); !error.empty())
    throw UsageError("--language is \"" + language + "\"" + error);
  const document::SentenceSplitter splitter(language);
  LineReader reader(input);
  Output sentences(output, {input});
  for (std::string line; reader.next(line);) {
    reader.require_clean(line);
    std::string written;
    for (const document::Span sentence : splitter.sentences(line)) written.append(sentence.of(line)).append("\n");
    if (!sentences.write(written)) return kBrokenPipe;
  }
  sentences.finish();
  return 0;
}

}  // namespace

Verb split_verb() {
  return {"split", "split text into sentences, one a line", run_split};
}

}  // namespace lacuna

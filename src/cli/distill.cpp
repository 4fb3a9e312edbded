#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "config/read_options.h"
#include "parts/job_folder.h"
#include "run/distilled_corpus.h"
#include "run/requirements.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr char kDistilledSrc[] = "distilled.src", kDistilledTgt[] = "distilled.tgt";

struct DistillFlags {
  std::vector<std::string> teachers;
  std::string mono, output;
  int64_t part_lines = 5000;
  DistillFilter filter;
  OnBadLine on_error = OnBadLine::kStop;
  flags::KeyFlags keys{option_help<TranslateOptions>("translate.")};
  CommonFlags common;

  void declare(CLI::App& app) {
    flags::add_models(app, teachers, ": an ensemble. The teacher");
    app.add_option("--mono", mono, "Text in the source language that the teacher translates, one sentence a line, plain, gzip or zstd")
        ->required();
    app.add_option("-o,--output", output, "Folder for the translations and the corpus made of them")
        ->default_str("the student's run, with .distill");
    keys.add(app, "-b,--beam-size", "translate.beam_size");
    keys.add(app, "--precision", "translate.precision");
    app.add_option("--keep", filter.keep, "Share of the translations to train on, those with the highest scores")
        ->check(real_number_between(0, 1));
    constexpr double kMostRatio = 1000;
    app.add_option("--max-length-ratio", filter.max_length_ratio,
                   "Leave out where one side has more than this many times the characters of the other")
        ->check(real_number_between(1, kMostRatio));
    app.add_option("--part-lines", part_lines, "Lines that are translated between two files: what an interruption may lose")
        ->check(whole_number_from(1));
    flags::add_on_error(app, on_error);
    common.declare_configuration(app);
    common.declare_runtime(app);
  }
};

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// Returns the flags of how a verb runs, as they were given.
std::vector<std::string> runtime_words(const CommonFlags& common) {
  std::vector<std::string> words;
  if (common.threads >= 0) append(words, {"--threads", std::to_string(common.threads)});
  if (!common.device.empty()) append(words, {"--device", common.device});
  if (common.quiet) words.emplace_back("--quiet");
  if (!common.log_level.empty()) append(words, {"--log-level", common.log_level});
  return words;
}

/// Translates what is not translated yet, by the verb translate.
void translate_mono(const DistillFlags& flags, const fs::path& parts) {
  std::vector<std::string> words;
  for (const std::string& teacher : flags.teachers) append(words, {"-m", teacher});
  append(words, {"-i", flags.mono, "-o", parts.string(), "--part-lines", std::to_string(flags.part_lines), "--scores"});
  append(words, {"--on-error", flags.on_error == OnBadLine::kSkip ? "skip" : "stop"});
  append(words, flags.keys.overrides());
  append(words, runtime_words(flags.common));
  try {
    translate_verb().run(words);
  } catch (const PassedOverError& error) {  // what was asked for
    log_warning("{}", error.what());
  }
}

/// Trains the student by the verb train, on the corpora of its configuration and the one that was made.
int train_student(const DistillFlags& flags, const CLI::App& app, const DataOptions& data) {
  std::vector<std::string> words;
  for (const std::string& config : flags.common.configs) append(words, {"-c", config});
  append(words, overrides_of(app));
  append(words, {"--data.train", write_options(data).find("train")->to_line()});
  append(words, runtime_words(flags.common));
  return train_verb().run(words);
}

int run_distill(const std::vector<std::string>& arguments) {
  CommandLine app("Trains a student on what a teacher makes of a text. The same command again goes on where it stopped.", "lacuna distill");
  DistillFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  require_single_process();
  const std::optional<Configuration> student = flags.common.configuration(app);
  if (!student) return 0;
  Options options = student->options;
  if (options.data.stream() != nullptr) throw ConfigError("data.train is a stream, which ends training; a student trains on files");
  require_readable_file(flags.mono, "text to translate");
  const fs::path folder = flags.output.empty() ? fs::path(options.run + ".distill") : fs::path(flags.output);
  const fs::path src = folder / kDistilledSrc, tgt = folder / kDistilledTgt;
  const bool is_made = fs::exists(src) && fs::exists(tgt);
  if (!is_made) require_trainable(options, student->rules);  // before the long work
  options.data.train.push_back({.name = "distilled", .src = src.string(), .tgt = tgt.string()});
  if (is_made) require_trainable(options, student->rules);
  make_output_folder(folder);
  translate_mono(flags, folder / "translations");
  const JobFolder job = JobFolder::open(folder / "translations");
  log_info("{}: {}", folder.string(), write_distilled(flags.mono, job, flags.filter, src, tgt).text());
  return train_student(flags, app, options.data);
}

}  // namespace

Verb distill_verb() {
  return {"distill", "train a small model on the translations of a large one", run_distill};
}

}  // namespace lacuna

#include "metrics/sacrebleu.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/spelling.h"
#include "metrics/run_sacrebleu.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Reads a configured command: the path of a program, which may have spaces, or a program and its first arguments.
Scorer configured_scorer(const std::string& configured) {
  if (find_program(configured)) return {{configured}};
  std::vector<std::string> words;
  std::istringstream stream(configured);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty() || !find_program(words.front())) {
    throw ConfigError("sacrebleu is \"" + configured +
                      "\", but there is no such program; expected a command that starts sacreBLEU, such as sacrebleu or "
                      "python3 -m sacrebleu. Leave it out to have it looked for");
  }
  return {words};
}

/// The begin of Python code that is given by `-c`: modules are not imported from the current folder, where a random.py of
/// the user's would take the place of the library's own. Python before 3.11 has no flag for that.
const std::string kLeaveOutCurrentFolder = "import sys; sys.path[:] = [path for path in sys.path if path]; ";

bool has_sacrebleu(const fs::path& python) {
  const std::string look = "import importlib.util; sys.exit(importlib.util.find_spec('sacrebleu') is None)";
  return run_process({python.string(), "-c", kLeaveOutCurrentFolder + look}).exit_code == 0;
}

/// Returns the command that starts sacreBLEU, with `python -m`, which imports from the current folder, replaced.
std::vector<std::string> without_current_folder(std::vector<std::string> command) {
  const std::string program = fs::path(command.front()).filename().string();
  const auto module = std::ranges::find(command, "-m");
  if (module == command.end() || !(program.starts_with("python") || program.starts_with("pypy"))) return command;
  *module = "-c";
  const std::string run = "del sys.argv[0]; import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";
  command.insert(module + 1, kLeaveOutCurrentFolder + run);
  return command;
}

/// The Python of the project's virtual environment, if the program lies in the project's build folder (PROJECT/build/...).
std::optional<fs::path> project_python(const fs::path& executable) {
  std::error_code ignored;
  for (fs::path folder = fs::canonical(executable, ignored).parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "build") return find_program(folder.parent_path() / ".venv/bin/python");
  return std::nullopt;
}

/// Codes of three letters (ISO 639-3, as in FLORES and NLLB; `chi`, `bur`, `tib` of 639-2) of the languages that scoring knows.
const std::map<std::string, std::string> kTwoLetters = {{"zho", "zh"}, {"cmn", "zh"}, {"yue", "zh"}, {"chi", "zh"}, {"jpn", "ja"},
                                                        {"kor", "ko"}, {"tha", "th"}, {"lao", "lo"}, {"khm", "km"}, {"mya", "my"},
                                                        {"bur", "my"}, {"bod", "bo"}, {"tib", "bo"}, {"dzo", "dz"}};

/// `zh-Hans`, `zh_CN`, `ZH` and `zho_Hans` are all `zh`.
std::string language_code(const std::string& tgt_lang) {
  const std::string code = language_of(tgt_lang);
  const auto known = kTwoLetters.find(code);
  return known == kTwoLetters.end() ? code : known->second;
}

/// The arguments of each metric beside its name.
std::vector<std::string> metric_arguments(const ScoreOptions& options) {
  std::vector<std::string> arguments = {"-m"};
  arguments.insert(arguments.end(), options.metrics.begin(), options.metrics.end());
  arguments.insert(arguments.end(), {"-tok", bleu_tokenizer(options)});
  if (options.lowercase) arguments.insert(arguments.end(), {"--lowercase", "--chrf-lowercase"});
  if (options.chrf_word_order > 0) arguments.insert(arguments.end(), {"--chrf-word-order", std::to_string(options.chrf_word_order)});
  // Without spaces between words TER would see one word a sentence.
  if (const std::string code = language_code(options.tgt_lang); code == "zh" || code == "ja")
    arguments.insert(arguments.end(), {"--ter-normalized", "--ter-asian-support"});
  return arguments;
}

/// The end of a message on packages that a tokenizer needs, which sacreBLEU names below a traceback; empty if it names none.
std::string missing_packages(const Scorer& scorer, const std::string& errors) {
  constexpr std::string_view kAdvice = "pip install ";
  const size_t found = errors.find(kAdvice);
  if (found == std::string::npos) return "";
  const size_t begin = found + kAdvice.size(), end = std::min(errors.find_first_of(" \r\n", begin), errors.size());
  const bool is_module = scorer.command.size() > 2 && *std::prev(scorer.command.end(), 2) == "-m";
  return (is_module ? scorer.command.front() + " -m " : "") + std::string(kAdvice) + "'" + errors.substr(begin, end - begin) + "'";
}

MetricScore read_score(const nlohmann::json& answer, bool with_interval) {
  MetricScore score = {.name = answer.at("name").get<std::string>(),
                       .score = answer.at("score").get<double>(),
                       .signature = answer.at("signature").get<std::string>(),
                       .details = answer.value("verbose_score", "")};
  if (answer.contains("confidence_mean")) {
    score.mean = answer.at("confidence_mean").get<double>();
    score.interval = answer.at("confidence_var").get<double>();
  } else if (with_interval) {
    score.mean = score.interval = 0;  // sacreBLEU leaves them out where the score is 0 in every resample
  }
  return score;
}

/// sacreBLEU writes one object for one metric, and a list of objects for several.
CorpusScores read_scores(const nlohmann::json& answer, bool with_intervals) {
  CorpusScores scores;
  for (const nlohmann::json& entry : answer.is_array() ? answer : nlohmann::json::array({answer})) {
    MetricScore score = read_score(entry, with_intervals);
    if (score.name.starts_with("BLEU"))
      scores.bleu = std::move(score);
    else if (score.name.starts_with("chrF"))
      scores.chrf = std::move(score);
    else if (score.name.starts_with("TER"))
      scores.ter = std::move(score);
  }
  return scores;
}

}  // namespace

Scorer find_sacrebleu(const std::string& configured, const fs::path& executable) {
  if (!configured.empty()) return configured_scorer(configured);
  if (const auto program = find_program("sacrebleu")) return {{program->string()}};
  for (const auto& python : {project_python(executable), find_program("python3")})
    if (python && has_sacrebleu(*python)) return {{python->string(), "-m", "sacrebleu"}};
  throw MachineError(
      "sacreBLEU was not found: neither the program sacrebleu on PATH, nor the package in the project's .venv or of python3. Run "
      "scripts/setup.sh where the program was built and put its .venv/bin on PATH, or install it (pip install sacrebleu==2.6.0), or name "
      "the "
      "command with --sacrebleu or the key sacrebleu");
}

std::vector<std::pair<std::string, MetricScore>> CorpusScores::all() const {
  std::vector<std::pair<std::string, MetricScore>> scores;
  if (bleu) scores.emplace_back("bleu", *bleu);
  if (chrf) scores.emplace_back("chrf", *chrf);
  if (ter) scores.emplace_back("ter", *ter);
  return scores;
}

std::string bleu_tokenizer(const ScoreOptions& options) {
  if (!options.tokenizer.empty()) return options.tokenizer;
  const std::string code = language_code(options.tgt_lang);
  if (code == "zh") return "zh";
  if (code == "ja") return "ja-mecab";
  if (code == "ko") return "ko-mecab";
  constexpr std::string_view kWithoutSpaces[] = {"th", "lo", "km", "my", "bo", "dz"};
  return std::ranges::find(kWithoutSpaces, code) == std::end(kWithoutSpaces) ? "13a" : "char";
}

ProcessResult run_sacrebleu(const Scorer& scorer, const ScoredFiles& files, const ScoreOptions& options,
                            const std::vector<std::string>& extra) {
  std::vector<std::string> command = without_current_folder(scorer.command);
  for (const auto& part : {files.references(), {"-i"}, files.systems(), metric_arguments(options), extra})
    command.insert(command.end(), part.begin(), part.end());
  // SACREBLEU_FORMAT would win over -f; the table has signs that need UTF-8.
  ProcessResult result = run_process(command, {.environment = {{"SACREBLEU_FORMAT", {}}, {"PYTHONUTF8", "1"}}});
  if (result.exit_code == 0) return result;
  if (const std::string install = missing_packages(scorer, result.errors); !install.empty())
    throw MachineError("sacreBLEU (" + join(scorer.command, " ") + ") lacks packages that its tokenizer " + bleu_tokenizer(options) +
                       " needs; install them where it is: " + install);
  const std::string message = "sacreBLEU (" + join(scorer.command, " ") + ") failed with exit code " + std::to_string(result.exit_code) +
                              (result.errors.empty() ? " and said nothing" : ":\n" + result.last_errors(6));
  if (result.exit_code == 2) throw UsageError(message);  // argparse's code for arguments that are not accepted
  throw MachineError(message);
}

void refuse_answer(const Scorer& scorer, const std::string& answer) {
  const std::string start = answer.substr(0, std::min<size_t>(answer.find('\n'), 200));
  throw MachineError("sacreBLEU (" + join(scorer.command, " ") + ") answered with \"" + start +
                     "\", which is not what sacreBLEU 2 writes. Run scripts/setup.sh, or install it (pip install sacrebleu==2.6.0)");
}

CorpusScores score_files(const Scorer& scorer, const fs::path& hypotheses, const std::vector<fs::path>& references,
                         const ScoreOptions& options) {
  const ScoredFiles files({hypotheses}, references, options.joiner, options.bad_lines);
  std::vector<std::string> extra = {"-f", "json", "-w", "4"};
  if (options.confidence_samples > 0)
    extra.insert(extra.end(), {"--confidence", "--confidence-n", std::to_string(options.confidence_samples)});
  const ProcessResult result = run_sacrebleu(scorer, files, options, extra);
  CorpusScores scores;
  try {
    scores = read_scores(nlohmann::json::parse(result.output), options.confidence_samples > 0);
  } catch (const nlohmann::json::exception&) {
    refuse_answer(scorer, result.output);
  }
  if (scores.all().size() != options.metrics.size()) refuse_answer(scorer, result.output);
  scores.tokenizer = bleu_tokenizer(options);
  scores.num_lines = files.num_lines();
  scores.bad_lines = files.bad_lines();
  scores.notes = result.errors;
  return scores;
}

void require_tokenizer(const Scorer& scorer, const std::string& tgt_lang) {
  const ScoreOptions options = {.metrics = {"bleu"}, .tgt_lang = tgt_lang};
  if (bleu_tokenizer(options).ends_with("-mecab")) score_lines(scorer, {"1"}, {{"1"}}, options);
}

CorpusScores score_lines(const Scorer& scorer, const std::vector<std::string>& hypotheses,
                         const std::vector<std::vector<std::string>>& references, const ScoreOptions& options) {
  const UnnamedFile hypothesis_file;
  write_lines(hypothesis_file.path(), hypotheses);
  std::list<UnnamedFile> copies;
  std::vector<fs::path> reference_files;
  reference_files.reserve(references.size());
  for (const std::vector<std::string>& lines : references) {
    reference_files.push_back(copies.emplace_back().path());
    write_lines(reference_files.back(), lines);
  }
  return score_files(scorer, hypothesis_file.path(), reference_files, options);
}

}  // namespace lacuna

#include <sstream>
#include <system_error>

#include "base/error.h"
#include "base/process.h"
#include "metrics/sacrebleu.h"

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

bool has_sacrebleu(const fs::path& python) {
  return run_process({python.string(), "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('sacrebleu') is None)"})
             .exit_code == 0;
}

/// The Python of the project's virtual environment, if the program lies in the project's build folder (PROJECT/build/...).
std::optional<fs::path> project_python(const fs::path& executable) {
  std::error_code ignored;
  for (fs::path folder = fs::canonical(executable, ignored).parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "build") return find_program(folder.parent_path() / ".venv/bin/python");
  return std::nullopt;
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

}  // namespace lacuna

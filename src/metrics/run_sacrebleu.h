#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "metrics/sacrebleu.h"
#include "metrics/scored_files.h"

namespace lacuna {

/// Runs sacreBLEU over files with the options of every metric and `extra` behind them, and returns what it wrote.
/// Throws UsageError if it refuses its arguments, MachineError if it fails; both with the last lines of its stderr, or in one line what to
/// install where it lacks packages of a tokenizer.
ProcessResult run_sacrebleu(const Scorer& scorer, const ScoredFiles& files, const ScoreOptions& options,
                            const std::vector<std::string>& extra);

/// Throws MachineError that says that `answer` is not what sacreBLEU 2 writes.
[[noreturn]] void refuse_answer(const Scorer& scorer, const std::string& answer);

}  // namespace lacuna

#pragma once

#include <filesystem>
#include <string>

#include "ablation/run_result.h"

namespace lacuna {

/// Fills in what a run folder tells of its training: speed (the median over the log's lines), peak memory, sparsity at the last validation,
/// epochs, updates and hours. What the files do not tell stays unknown.
void read_training(const std::filesystem::path& run, RunResult& result);

/// Numbers in the weights of a checkpoint.
int64_t count_parameters(const std::filesystem::path& checkpoint);

/// Mean loss in nats per target token, from what `lacuna score --tokens` prints: a line a sentence, its log-probability, a tab, and those
/// of its tokens. Throws MachineError for anything else.
double nll_per_token(const std::string& scores);

/// What a program of ours said last before it ended with an error: the text behind `lacuna VERB: error: `. Empty if there is none.
std::string error_message(const std::string& last_errors);

}  // namespace lacuna

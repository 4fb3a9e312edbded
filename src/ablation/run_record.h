#pragma once

#include <filesystem>
#include <string>

#include "ablation/run_result.h"

namespace lacuna {

/// Reads facts about a run's training from its folder: speed (the median over the log's lines), peak memory, sparsity at the last
/// validation, epochs, updates and hours. Facts that the files lack stay unknown.
void read_training(const std::filesystem::path& run, RunResult& result);

/// Returns the number of weights of a checkpoint.
int64_t count_parameters(const std::filesystem::path& checkpoint);

/// Returns the mean loss in nats per target token, from what `lacuna score --tokens` prints: a line a sentence, its log-probability, a tab,
/// and those of its tokens. Throws MachineError for anything else.
double nll_per_token(const std::string& scores);

/// Returns the error message that a verb ended with: the text after `lacuna VERB: error: `. Empty if there is none.
std::string error_message(const std::string& last_errors);

}  // namespace lacuna

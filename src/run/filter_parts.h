#pragma once

#include <string>
#include <vector>

#include "analysis/filter_corpus.h"
#include "parts/job_folder.h"

/// `lacuna score --filter` of a corpus that several processes work on in parts: each part has a line for each pair, and once all parts are
/// there, one process ranks the pairs.
namespace lacuna {

/// Returns the lines of a part: null rate, log-probability of a token and null contrast of each pair, between tabs, as exact as they are;
/// nan where a pair has no scores.
std::string filter_lines(const std::vector<PairScore>& scores);

/// Reads the scores of all parts. Throws DataError, with part and line, for one that is none.
std::vector<PairScore> filter_scores_of(const JobFolder& job);

/// Ranks the pairs of a job whose parts are all there, `bad_pairs` of which were passed over, and writes what --filter writes; does nothing
/// if it has been written. Waits for another process that is at it.
void filter_from_parts(const JobFolder& job, const FilterCorpus& corpus, const FilterFlags& flags, const FilterScorer& scorer,
                       int64_t bad_pairs);

}  // namespace lacuna

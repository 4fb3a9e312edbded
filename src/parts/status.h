#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parts/job_folder.h"

namespace lacuna {

/// How far a job is.
struct JobStatus {
  struct Claimed {
    int64_t part = 0;
    ClaimState claim;
  };
  std::string folder;
  int64_t parts_done = 0, lines_done = 0, bad_lines = 0;
  std::optional<double> parts,
      lines;  ///< of the whole text: exact once its end is known, before that estimated by the share of the input read
  bool is_end_known = false;
  std::vector<Claimed> running, stale;
  std::optional<double> lines_per_second;  ///< of all workers, lately; none if nobody works
  std::optional<double> seconds_left;

  bool is_done() const { return is_end_known && parts_done == static_cast<int64_t>(*parts); }
  std::string text() const;
  nlohmann::ordered_json json() const;
};

/// Looks at a job. Throws DataError for what is none, and for files that are not its own.
JobStatus status_of(const JobFolder& job);

}  // namespace lacuna

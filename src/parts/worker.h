#pragma once

#include <cstdint>
#include <functional>

#include "base/output.h"
#include "parts/job_folder.h"

namespace lacuna {

/// What a verb makes of a text, part by part.
class PartMaker {
 public:
  virtual ~PartMaker() = default;
  /// Goes to a line, from 0, before or behind the present one. Returns false if the text ends before it, or with it: at line 0 of an empty
  /// text.
  virtual bool go_to(int64_t line) = 0;
  /// Returns the line that comes next; behind a go_to() that found the end, the number of all lines.
  virtual int64_t line() const = 0;
  /// Writes what is made of the next lines, at most so many, and says how many they were. Calls `look` every now and then, which throws if
  /// the work is in vain.
  virtual PartRecord make(Output& output, int64_t lines, const std::function<void()>& look) = 0;
};

/// How much of a job is done: all of it.
struct JobTotals {
  int64_t parts = 0, lines = 0, bad_lines = 0;  ///< of all workers
};

/// Works on a job until all of its parts are there: makes free ones, waits for those of other workers, and takes over what these have left.
/// Throws what the maker throws, after which the part is free; Interrupted for a signal; DataError if the parts that are there are not
/// those of the input; MachineError if the folder cannot be written.
JobTotals work_on(JobFolder& job, PartMaker& maker);

}  // namespace lacuna

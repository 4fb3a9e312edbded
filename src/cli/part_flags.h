#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "parts/worker.h"

namespace lacuna {

/// Flags of verbs that several processes may share the work of: -o is then a folder, of parts.
struct PartFlags {
  PartTerms cut;
  bool is_status = false;  ///< print how far the job is, and end

  /// Declares the flags. `required`: flags that need not be given for a job to be looked at. `alone`: flags that have no meaning with
  /// parts.
  void declare(CLI::App& app, const std::vector<CLI::Option*>& required, const std::vector<CLI::Option*>& alone);
  bool are_given() const { return cut.lines > 0; }
  /// Throws UsageError if -o is no folder, or an input is standard input.
  void require_files(const std::string& output, const std::vector<std::string>& inputs) const;
  /// Prints how far the job in a folder is.
  static void print_status(const std::string& folder, bool as_json);
};

/// Works on the job, says where its parts are, and ends as flags::require_none_passed_over() does.
void work_on_parts(JobFolder& job, PartMaker& maker);

}  // namespace lacuna

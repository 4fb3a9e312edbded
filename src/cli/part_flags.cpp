#include "cli/part_flags.h"

#include <iostream>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "parts/status.h"

namespace lacuna {

void PartFlags::declare(CLI::App& app, const std::vector<CLI::Option*>& required, const std::vector<CLI::Option*>& alone) {
  constexpr double kShortestLease = 0.1, kLongestLease = 1e7;
  auto* lines =
      app.add_option("--part-lines", cut.lines,
                     "Work on the text in parts of N lines: -o is a folder, and any number of processes, on all machines that share it, "
                     "may be started with the same words. Each makes parts that are free, and ends when all are there")
          ->check(whole_number_from(1))
          ->default_str("");
  app.add_option("--part-packing", cut.packing, "Parts are .zst, .gz or, with none, .txt files")
      ->check(CLI::IsMember({"zst", "gz", "none"}))
      ->needs(lines);
  app.add_option(
         "--lease", cut.lease,
         "Seconds after which a part is anyone's, if the process that works on it has not touched its claim; one that has ended on this "
         "host loses it at once")
      ->check(real_number_between(kShortestLease, kLongestLease))
      ->type_name("X")
      ->needs(lines);
  auto* status = app.add_flag_callback(
      "--parts-status",
      [this, required] {
        is_status = true;
        for (CLI::Option* option : required) option->required(false);
      },
      "Print how far the job in the folder -o is: parts that are done, who works on others, lines, time left; in JSON with --json");
  status->trigger_on_parse()->excludes(lines);
  for (CLI::Option* other : alone) lines->excludes(other);
}

void PartFlags::require_files(const std::string& output, const std::vector<std::string>& inputs) const {
  if (output.empty() || output == "-") throw UsageError("--part-lines needs a folder for the parts; give -o FOLDER");
  for (const std::string& input : inputs)
    if (input == "-") throw UsageError("--part-lines needs a file that every worker can read; give -i FILE in place of standard input");
}

void PartFlags::print_status(const std::string& folder, bool as_json) {
  if (folder.empty() || folder == "-") throw UsageError("--parts-status needs the folder of the parts; give -o FOLDER");
  const JobStatus status = status_of(JobFolder::open(folder));
  std::cout << (as_json ? json_text(status.json(), 2) + "\n" : status.text());
}

void work_on_parts(JobFolder& job, PartMaker& maker) {
  const JobTotals totals = work_on(job, maker);
  log_info("{}: all of {} are there, {}; end to end they are the whole", job.path().string(), counted(totals.parts, "part"),
           counted(totals.lines, "line"));
  flags::require_none_passed_over(totals.bad_lines, totals.lines);
}

}  // namespace lacuna

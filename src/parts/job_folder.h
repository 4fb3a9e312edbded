#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "parts/claim.h"
#include "parts/folder_clock.h"

/// A text that many processes, on any machines that share a folder, work through in parts of so many lines:
///
///   job.json            what all workers agree on: program, models, options that change the output, input; made once, never changed
///   part-000017.zst     the lines made of part 17, from 0; whole or not there
///   part-000017.json    how many lines that are, and how many were passed over as bad; written before the part
///   part-000017.claim   a worker is at it (claim.h)
///
/// The parts, end to end, are what one process would write.
namespace lacuna {

/// How a text is cut, as all workers of a job agree.
struct PartTerms {
  int64_t lines = 0;            ///< of a part; the last one may have fewer
  std::string packing = "zst";  ///< zst, gz, or none
  double lease = 600;           ///< seconds after which a claim that nobody touches is anyone's
};

/// A file that is read, with its sampled_digest_of().
struct JobInput {
  std::filesystem::path path;
  FileDigest digest;
};

/// What a worker says of a part that it has done.
struct PartRecord {
  int64_t lines = 0, bad_lines = 0;  ///< of the input: all, and those that were passed over
  bool is_last = false;              ///< the text ends with it
  double share_read = 0;             ///< of the input's bytes, when the part was done
  double seconds = 0;                ///< that it took
  std::string host = {};
};

/// A file of the folder that belongs to a part.
struct PartFile {
  enum class Kind { kPart, kRecord, kClaim };
  Kind kind;
  int64_t part;
};

/// The folder of a job.
class JobFolder {
 public:
  /// The most parts of a job: their names then have six digits, and sort in their order.
  static constexpr int64_t kMostParts = 1'000'000;

  /// Makes the job, or joins the one that is there. `terms` are further keys that all workers must have the same values of. Throws
  /// UsageError, with the key and both values, if the job is another one, DataError if the folder holds parts and no job, or something
  /// else, and MachineError if it cannot be written.
  static JobFolder make_or_join(const std::filesystem::path& folder, const PartTerms& cut, const nlohmann::ordered_json& terms,
                                std::vector<JobInput> inputs);
  /// Opens a job to look at it. Throws DataError if there is none.
  static JobFolder open(const std::filesystem::path& folder);

  const PartTerms& cut() const { return cut_; }
  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path part_file(int64_t part) const { return file_of(part, extension()); }
  std::filesystem::path claim_file(int64_t part) const { return file_of(part, ".claim"); }
  /// ".zst", ".gz", or ".txt" of parts that are not packed.
  std::string extension() const;

  /// True if the part is done.
  bool has(int64_t part) const;
  /// Writes the record of a part whose file is about to get its name. Throws MachineError.
  void write_record(int64_t part, const PartRecord& record) const;
  /// Reads the record of a part. Throws DataError if it is missing or damaged.
  PartRecord read_record(int64_t part) const;
  /// Returns the number of parts, if the last one is done.
  std::optional<int64_t> known_parts() const;
  /// Returns the files of parts, in no order. Throws DataError for one whose name begins with "part-" and is none of the job's, as `cat
  /// part-*` would take it in.
  std::vector<PartFile> part_files() const;

  /// Throws MachineError if the job was removed, or begun anew, since this process joined it.
  void require_in_place() const;
  /// Throws DataError if an input has another size than when this process began.
  void require_same_sizes() const;
  /// Throws DataError if an input has other bytes (sampled_digest_of) than when this process began.
  void require_same_inputs() const;

 private:
  JobFolder(std::filesystem::path folder, std::vector<JobInput> inputs) : folder_(std::move(folder)), inputs_(std::move(inputs)) {}
  std::filesystem::path file_of(int64_t part, const std::string& end) const;
  std::filesystem::path job_file() const { return folder_ / "job.json"; }
  void make(const nlohmann::ordered_json& terms) const;
  /// Returns false if there is no job.
  bool read(nlohmann::ordered_json& terms);

  std::filesystem::path folder_;
  std::vector<JobInput> inputs_;
  PartTerms cut_;
  std::string text_;  // of job.json
};

}  // namespace lacuna

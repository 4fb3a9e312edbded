#include "base/output.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/error.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/spelling.h"
#include "base/system_error.h"

namespace lacuna {

void make_output_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::error_code is_unknown;
  if (std::filesystem::is_directory(folder, is_unknown)) return;
  const std::string what = folder.string() + ": is not a folder, and cannot become one", expected = "; expected where to write to";
  if (error) fail_by(error.value(), what + ": ", expected);
  throw DataError(what + expected);
}

namespace {

/// Names of files that a signal removes, in plain memory: a signal handler may call only few functions. A file that is gone does no harm.
constexpr size_t kMostToRemove = 24;  // of more files, those written first stay until the next start
char files_to_remove[kMostToRemove][PATH_MAX];

void remove_and_end(int signal) {
  remove_unfinished_outputs();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// Makes Ctrl-C, SIGTERM and SIGHUP remove the file before they end the program. Signals that the verb handles, or that the program was
/// started with ignored, stay as they are.
void remove_if_interrupted(const std::string& file) {
  static size_t next = 0;
  char(&slot)[PATH_MAX] = files_to_remove[next++ % kMostToRemove];
  slot[file.copy(slot, sizeof slot - 1)] = '\0';
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction former = {};
    if (sigaction(signal, nullptr, &former) == 0 && former.sa_handler == SIG_DFL) std::signal(signal, remove_and_end);
  }
}

/// Returns the name of the part of a file that was kept as the n-th, from 1: of a start that ended early.
std::filesystem::path part_of(const std::filesystem::path& file, int n) {
  std::string name = file.string() + ".partial";
  if (n > 1) name.append(1, '.').append(std::to_string(n));
  return name;
}

/// True if a file begins with all that is in `part`, both unpacked.
bool begins_with(const std::filesystem::path& file, const std::filesystem::path& part) {
  try {
    InputStream whole(file), beginning(part);
    std::string bytes;
    for (std::string wanted; beginning.read(wanted); wanted.clear()) {
      while (bytes.size() < wanted.size() && whole.read(bytes)) {
      }
      if (!bytes.starts_with(wanted)) return false;
      bytes.erase(0, wanted.size());
    }
    return true;
  } catch (const Error&) {  // a damaged one is not known to
    return false;
  }
}

/// Throws if no file can be made at `path`, before there is anything to write.
void require_place_for_file(const std::filesystem::path& path) {
  if (path.empty()) throw UsageError("-o is empty; expected a file to write to, or - for standard output");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw DataError(path.string() + ": is a folder; expected a file to write to");
  const std::filesystem::path folder = path.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw DataError(path.string() + ": cannot be written: there is no folder " + folder.string() + "; make it, or name another");
}

}  // namespace

void remove_unfinished_outputs() {
  for (const char* const file : files_to_remove) unlink(file);
}

void require_not_read(const std::filesystem::path& output, const std::vector<std::string>& inputs) {
  std::error_code error;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, error))
      throw UsageError(output.string() + " is read, and would be written over; name another");
}

Output::Output(const std::filesystem::path& path, const std::vector<std::string>& inputs) : path_(path), inputs_(inputs) {
  if (path == "-") return;
  require_place_for_file(path);
  if (is_replaceable(path)) {
    require_not_read(path, inputs);
    path_ = behind_links(path);
    require_place_for_file(path_);
    file_ = std::make_unique<FileReplacement>(path_);
    remove_if_interrupted(file_->temporary().string());
    packed_ = compressed_writer(path, file_->writer());
    return;
  }
  stream_ = open_to_write_to(path);
  if (stream_ < 0) fail_to_write(path_, 0);
}

Output::~Output() {
  if (stream_ != STDOUT_FILENO) close(stream_);
}

bool Output::write(std::string_view text) {
  if (file_ != nullptr) {
    packed_ != nullptr ? packed_->write(text) : file_->writer().write(text);
    return true;
  }
  while (!text.empty()) {
    const ssize_t count = ::write(stream_, text.data(), text.size());
    if (count < 0 && errno == EPIPE) return false;
    if (count < 0 && !may_try_again(stream_, POLLOUT))
      throw MachineError((path_ == "-" ? "stdout" : path_.string()) + " cannot be written: " + std::strerror(errno));
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void Output::sync() {
  if (file_ == nullptr) return;
  if (packed_ != nullptr) packed_->finish();
  packed_.reset();
  file_->sync();
}

void Output::finish() {
  sync();
  if (file_ != nullptr) file_->finish();
}

void Output::remove_parts() const {
  if (file_ == nullptr) return;
  std::error_code error;
  const auto is_input = [&](const std::filesystem::path& part) {
    return std::ranges::any_of(inputs_, [&](const std::string& input) { return std::filesystem::equivalent(part, input, error); });
  };
  for (int n = 1; std::filesystem::is_regular_file(std::filesystem::symlink_status(part_of(path_, n), error)); ++n) {
    const std::filesystem::path part = part_of(path_, n);
    if (is_input(part) || std::filesystem::is_empty(part, error)) continue;
    if (!begins_with(path_, part))
      log_warning("{}, of an earlier start, stays: {} does not begin with it", part.string(), path_.string());
    else if (std::filesystem::remove(part, error))
      log_info("{}, of an earlier start, is removed: {} has all of it", part.string(), path_.string());
  }
}

void finish_together(const std::vector<Output*>& outputs, const std::vector<std::filesystem::path>& outdated) {
  for (Output* const output : outputs) output->sync();
  for (const Output* const output : outputs)
    if (output->file_ != nullptr) output->file_->remove_former();
  for (const std::filesystem::path& path : outdated) {
    if (unlink(path.c_str()) == 0)
      log_info("{} is removed: it is not among the files that are written there now", path.string());
    else if (errno != ENOENT)
      fail_to_write(path, 0);
  }
  for (const Output* const output : outputs)  // removed on the disk, too, before one of the new ones may be there
    if (output->file_ != nullptr) try_sync_folder(output->path_.parent_path());
  for (Output* const output : outputs) output->finish();
}

void Output::keep_partial_of(int64_t lines) {
  if (file_ == nullptr || lines == 0) return;
  try {
    sync();
    std::error_code error;
    int n = 1;
    while (std::filesystem::exists(part_of(path_, n), error) && !begins_with(file_->temporary(), part_of(path_, n))) ++n;
    file_->finish_as(part_of(path_, n));
    log_warning("{} has what was made of the first {}", part_of(path_, n).string(), counted(lines, "line"));
  } catch (const MachineError&) {  // why the verb ends is worth more to know
  }
}

}  // namespace lacuna

#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lacuna {

void make_output_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder))
    throw DataError(folder.string() + ": is not a folder, and cannot become one" + (error ? ": " + error.message() : "") +
                    "; expected where to write to");
}

void require_new_or_checkpoint(const std::string& output, const std::vector<std::string>& inputs) {
  const std::filesystem::path path(output), link = path.has_filename() ? path : path.parent_path();
  if (std::filesystem::is_symlink(link))
    throw UsageError("-o is " + output + ", which is a link, as a run folder has to its checkpoints; name another folder");
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, error)) throw UsageError("-o is " + output + ", which is read; name another folder");
  if (!std::filesystem::exists(path / "manifest.json"))
    throw UsageError("-o is " + output + ", which is there and is no checkpoint; name a folder to be made");
}

namespace {

/// Throws where no file can come to be, before there is anything to write.
void require_place_for_file(const std::filesystem::path& path) {
  if (path.empty()) throw UsageError("-o is empty; expected a file to write to, or - for standard output");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw DataError(path.string() + ": is a folder; expected a file to write to");
  const std::filesystem::path folder = path.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw DataError(path.string() + ": cannot be written: there is no folder " + folder.string() + "; make it, or name another");
}

}  // namespace

void require_not_read(const std::filesystem::path& output, const std::vector<std::string>& inputs) {
  std::error_code error;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, error))
      throw UsageError(output.string() + " is read, and would be written over; name another");
}

Output::Output(const std::filesystem::path& path, const std::vector<std::string>& inputs) : path_(path) {
  if (path == "-") return;
  require_place_for_file(path);
  if (is_replaceable(path)) {
    require_not_read(path, inputs);
    path_ = behind_links(path);
    require_place_for_file(path_);
    temporary_ = temporary_beside(path_);
    file_ = std::make_unique<FileWriter>(temporary_, path_);
    return;
  }
  stream_ = open_to_write_to(path);
  if (stream_ < 0) throw MachineError(path_.string() + ": cannot be written: " + std::strerror(errno));
}

Output::~Output() {
  if (stream_ != STDOUT_FILENO) close(stream_);
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

bool Output::write(std::string_view text) {
  if (file_ != nullptr) {
    file_->write(text);
    return true;
  }
  while (!text.empty()) {
    const ssize_t count = ::write(stream_, text.data(), text.size());
    if (count < 0 && errno == EPIPE) return false;
    if (count < 0 && errno != EINTR)
      throw MachineError((path_ == "-" ? "stdout" : path_.string()) + " cannot be written: " + std::strerror(errno));
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void Output::finish() {
  if (file_ == nullptr) return;
  file_->finish();
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) throw MachineError(path_.string() + ": cannot be written: " + error.message());
  sync_directory(path_.parent_path());
  file_.reset();  // until here the destructor removes the temporary file
}

}  // namespace lacuna

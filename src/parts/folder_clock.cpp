#include "parts/folder_clock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/durable_files.h"
#include "base/files.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

constexpr std::string_view kClockMark = ".now.";  // the process follows

}  // namespace

bool FolderClock::is_left(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kClockMark)) return false;
  const auto writer = WriterProcess::parse(std::string_view(name).substr(kClockMark.size()));
  return writer && writer->is_gone(file);
}

FolderClock::FolderClock(const std::filesystem::path& folder) : folder_(folder) {
  const std::filesystem::path name = folder / (std::string(kClockMark) + WriterProcess().name());
  unlink(name.c_str());  // a former process with this one's number was killed before it could
  file_ = uninterrupted([&] { return open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); });
  if (file_ < 0) fail_to_write(folder_, 0);
  unlink(name.c_str());
}

FolderClock::~FolderClock() {
  close(file_);
}

double FolderClock::now() const {
  struct stat status = {};
  if (futimens(file_, nullptr) != 0 || fstat(file_, &status) != 0) fail_to_write(folder_, 0);
  return static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) * 1e-9;
}

}  // namespace lacuna

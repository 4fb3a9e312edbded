#include "checkpoint/durable_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <regex>
#include <system_error>

#include "base/error.h"
#include "base/maker.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& place, int error) {
  throw MachineError(what + " " + place.string() + ": " + std::strerror(error));
}

// Temporary names are .<final name>.<mark>.<maker>: hidden, beside the final one, and telling whether their maker still lives.
constexpr char kTemporary[] = "tmp";  ///< half-written, or being removed
constexpr char kReplaced[] = "old";   ///< stood at the final name until a moment ago

fs::path beside(const fs::path& place, const char* mark) {
  std::string name = ".";
  name.append(place.filename().string()).append(".").append(mark).append(".");
  return place.parent_path() / name.append(Maker().name());
}

/// What has a temporary name. Where it cannot go now (NFS, while its files are read), it is a leftover for later.
void remove_temporary(const fs::path& temporary) {
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
}

struct Leftover {
  std::string name, mark;  ///< name: the final one
};

/// Whether a crashed process left it, which may have had the number of this one, as this one makes one thing at a time.
bool is_leftover(const fs::path& place, std::chrono::seconds patience, Leftover& leftover) {
  static const std::regex kName(R"(\.(.+)\.(tmp|old)\.([^.]+\.[^.]+))");
  const std::string file = place.filename().string();
  std::smatch match;
  if (!std::regex_match(file, match, kName)) return false;
  leftover = {match[1], match[2]};
  const auto maker = Maker::named(match[3].str());
  return maker && (maker->is_this_process() || maker->is_gone(place, patience));
}

/// Absolute, without a slash at the end, so that it has a parent and a name.
fs::path normal(const fs::path& place) {
  fs::path path = fs::absolute(place).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

void DurableFile::write(std::string_view bytes) {
  hash_.add_piece(bytes);
  bytes_ += bytes.size();
  file_.write(bytes);
}

FileDigest DurableFile::finish() {
  file_.finish();
  return {bytes_, hash_.text()};
}

FileDigest write_durably(const fs::path& file, std::string_view bytes) {
  DurableFile writer(file);
  writer.write(bytes);
  return writer.finish();
}

void sync_folder(const fs::path& folder) {
  if (const std::error_code error = sync_directory(folder)) fail("cannot sync the folder", folder, error.value());
}

void replace_link(const fs::path& link, const std::string& target) {
  const fs::path place = normal(link), temporary = beside(place, kTemporary);
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0) fail("cannot make the link", temporary, errno);
  if (rename(temporary.c_str(), place.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail("cannot replace the link", place, error);
  }
  sync_folder(place.parent_path());
}

FolderInTheMaking::FolderInTheMaking(const fs::path& place) : place_(normal(place)), temporary_(beside(place_, kTemporary)) {
  std::error_code error;
  fs::create_directories(place_.parent_path(), error);
  if (error) fail("cannot make the folder", place_.parent_path(), error.value());
  remove_leftovers(place_.parent_path());
  if (!fs::create_directory(temporary_, error)) fail("cannot make the folder", temporary_, error ? error.value() : EEXIST);
}

FolderInTheMaking::~FolderInTheMaking() {
  if (!committed_) remove_temporary(temporary_);
}

void FolderInTheMaking::commit() {
  sync_folder(temporary_);
  const fs::path parent = place_.parent_path();
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0) {
    committed_ = true;  // the former folder now has the temporary name
    sync_folder(parent);
    remove_temporary(temporary_);
    return;
  }
  // Nothing stood there, or the file system cannot exchange names: then the former folder steps aside for a moment, and `remove_leftovers`
  // brings it back should this process die in that moment.
  const fs::path former = beside(place_, kReplaced);
  const bool replaces = rename(place_.c_str(), former.c_str()) == 0;
  if (!replaces && errno != ENOENT) fail("cannot replace", place_, errno);
  if (rename(temporary_.c_str(), place_.c_str()) != 0) {
    const int error = errno;
    if (replaces) rename(former.c_str(), place_.c_str());
    fail("cannot rename a folder to", place_, error);
  }
  committed_ = true;
  sync_folder(parent);
  if (replaces) remove_temporary(former);
}

void remove_folder(const fs::path& folder) {
  const fs::path place = normal(folder), temporary = beside(place, kTemporary);
  if (rename(place.c_str(), temporary.c_str()) != 0) fail("cannot remove", place, errno);
  remove_temporary(temporary);
}

void remove_leftovers(const fs::path& parent, std::chrono::seconds patience) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    Leftover leftover;
    if (!is_leftover(entry.path(), patience, leftover)) continue;
    const fs::path place = parent / leftover.name;
    if (leftover.mark == kReplaced && !fs::exists(place))
      fs::rename(entry.path(), place, error);
    else
      remove_temporary(entry.path());
  }
}

}  // namespace lacuna

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace lacuna {

/// A folder for one test, removed with all it holds.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lacuna_test.XXXXXX").string();
    path_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }
  /// Writes a shell script that can be run and returns its path.
  std::string write_program(const std::string& name, const std::string& body) const {
    const std::string file = write(name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  /// The number of files and folders within, at any depth.
  size_t num_entries() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::recursive_directory_iterator(path_), std::filesystem::recursive_directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// Sets a variable of the environment until the end of the test.
class ScopedVariable {
 public:
  ScopedVariable(const std::string& name, const std::string& value) : name_(name) {
    const char* const old = std::getenv(name.c_str());
    was_set_ = old != nullptr;
    if (was_set_) old_ = old;
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (was_set_)
      setenv(name_.c_str(), old_.c_str(), 1);
    else
      unsetenv(name_.c_str());
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_, old_;
  bool was_set_ = false;
};

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  return bytes.str();
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// The message of the error of type E that `f` throws; a failure if it throws none.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace lacuna

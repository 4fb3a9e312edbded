#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "metrics/sacrebleu.h"
#include "metrics/scored_files.h"

namespace lacuna {

/// A folder for one test, and programs in it.
class Scratch : public ScratchFolder {
 public:
  /// A shell script that can be run.
  std::string write_program(const std::string& name, const std::string& body) const {
    const std::string file = write(name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
};

/// A variable of the environment, put back at the end of the test.
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

/// The Python whose packages the tests use: LACUNA_TEST_PYTHON, else that of the project's virtual environment.
inline std::string test_python() {
  const char* const named = std::getenv("LACUNA_TEST_PYTHON");
  return named != nullptr ? named : LACUNA_SOURCE_DIR "/.venv/bin/python";
}

inline Scorer real_scorer() {
  return {{test_python(), "-m", "sacrebleu"}};
}

}  // namespace lacuna

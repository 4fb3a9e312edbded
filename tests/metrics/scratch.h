#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "metrics/run_sacrebleu.h"
#include "metrics/sacrebleu.h"

namespace lacuna {

using Scratch = ScratchFolder;

/// The Python whose packages the tests use: LACUNA_TEST_PYTHON, else that of the project's virtual environment.
inline std::string test_python() {
  const char* const named = std::getenv("LACUNA_TEST_PYTHON");
  return named != nullptr ? named : LACUNA_SOURCE_DIR "/.venv/bin/python";
}

inline Scorer real_scorer() {
  return {{test_python(), "-m", "sacrebleu"}};
}

}  // namespace lacuna

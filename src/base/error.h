#pragma once

#include <stdexcept>
#include <string>

namespace lacuna {

/// Base of every error a user can meet. The message names the place (file, line, key), the value, what was expected and what to do.
/// Only `main` prints it and ends the process with `exit_code()`; libraries neither exit nor abort.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// 2: what the user wrote is wrong. 1: the machine refused.
  virtual int exit_code() const { return 2; }
};

/// A wrong command line: unknown verb or flag, missing argument.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A wrong key, value or combination in a configuration file or override.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A corpus, vocabulary or other input file that is missing, unreadable or malformed.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint that is damaged, of another shape, or from a newer version.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

/// A checkpoint whose bytes are not those that were written.
class DamagedCheckpointError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// The machine refused: disk full, out of memory, a helper program missing or failing.
class MachineError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 1; }
};

/// Shapes that do not fit together: a mistake in a program that uses the library, never reachable from user input.
class ShapeError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace lacuna

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

/// NumPy's archives of arrays, .npz (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a zip archive whose members
/// are arrays, each with a header that is a Python literal. Only members that are stored as they are are read: a small file cannot become
/// a large one.
namespace lacuna {

struct NpzArrays {
  NamedTensors tensors;                      ///< arrays of floats, by names without .npy
  std::map<std::string, std::string> bytes;  ///< arrays of bytes
};

/// Reads the archive whose bytes are `file`. Nothing in it is trusted: throws DataError with `name` and what is wrong.
NpzArrays read_npz(std::string_view file, const std::string& name);

}  // namespace lacuna

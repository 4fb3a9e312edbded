#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lacuna {

/// A number of a file of the system such as /proc/meminfo: the one behind `name`, or the one that a line begins with if that is empty.
/// Nothing if there is no such file or number.
std::optional<uint64_t> number_in_file(const std::filesystem::path& file, const std::string& name = "");

}  // namespace lacuna

#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

/// The calls that make files last, watched. A test program that has system_calls.cpp among its sources is linked with
/// -Wl,--wrap=fsync,--wrap=rename,--wrap=renameat2,--wrap=unlink, so that what our libraries call comes here first. What the C++ library
/// calls (std::filesystem::rename) does not.
namespace lacuna {

/// While it lives, each of these calls within `folder` is noted in order: "fsync FILE", "unlink FILE", "rename FROM TO" or "exchange ONE
/// OTHER", by names as seen from the folder, which itself is ".".
class WatchedCalls {
 public:
  explicit WatchedCalls(const std::filesystem::path& folder);
  ~WatchedCalls();
  WatchedCalls(const WatchedCalls&) = delete;
  WatchedCalls& operator=(const WatchedCalls&) = delete;

  std::vector<std::string> calls;
  /// Asked before a call is made: 0, or the error that it fails with instead (but for unlink).
  std::function<int(const std::string& call)> error = [](const std::string&) { return 0; };
};

}  // namespace lacuna

#include "ranks/stage.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

namespace lacuna {

Failure::Failure(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    text = error.what();
    exit_code = error.exit_code();
  } catch (const c10::Error& error) {
    text = std::string("LibTorch: ") + error.what_without_backtrace();
  } catch (const std::bad_alloc&) {
    text = "out of memory";
  } catch (const std::exception& error) {
    text = error.what();
  }
}

Failure Failure::of_bytes(const std::string& bytes) {
  const size_t space = bytes.find(' ');
  if (space == std::string::npos) throw std::logic_error("a rank has sent no failure");
  return {bytes.substr(space + 1), std::atoi(bytes.c_str())};
}

std::string name_of_rank(int rank) {
  std::array<char, 256> host = {};
  const bool is_known = gethostname(host.data(), host.size() - 1) == 0 && host[0] != 0;
  return "rank " + std::to_string(rank) + (is_known ? " (" + std::string(host.data()) + ")" : "");
}

void end_together(Group& group, const std::exception_ptr& failure) {
  if (group.is_alone()) {
    if (failure) std::rethrow_exception(failure);
    return;
  }
  std::string status;
  if (failure) {
    const Failure own(failure);
    status = Failure(name_of_rank(group.rank()) + ": " + own.text, own.exit_code).bytes();
  }
  const std::vector<std::string> all = group.gather_to_all(status);
  if (failure) std::rethrow_exception(failure);
  for (const std::string& one : all)
    if (!one.empty()) {
      const Failure other = Failure::of_bytes(one);
      throw OtherRankError(other.text, other.exit_code);
    }
}

std::string from_first(Group& group, const std::function<std::string()>& work) {
  if (group.is_alone()) return work();
  constexpr char kDone = 'd', kFailed = 'f';
  std::string bytes;
  std::exception_ptr failure;
  if (group.is_first()) {
    try {
      bytes = kDone + work();
    } catch (...) {
      failure = std::current_exception();
      const Failure own(failure);
      bytes = kFailed + Failure(name_of_rank(0) + ": " + own.text, own.exit_code).bytes();
    }
  }
  bytes = group.broadcast(bytes);
  if (failure) std::rethrow_exception(failure);
  const char outcome = bytes.empty() ? kFailed : bytes.front();
  bytes.erase(0, 1);
  if (outcome == kDone) return bytes;
  const Failure other = Failure::of_bytes(bytes);
  throw OtherRankError(other.text, other.exit_code);
}

void at_first(Group& group, const std::function<void()>& work) {
  from_first(group, [&] {
    work();
    return std::string();
  });
}

}  // namespace lacuna

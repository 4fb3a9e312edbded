#include "ranks/stage.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/resources.h"

namespace lacuna {
namespace {

std::atomic<bool> ended_together = false;

}  // namespace

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

std::string packed(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes.append(std::to_string(text.size())).append(" ").append(text);
  return bytes;
}

std::vector<std::string> unpacked(const std::string& bytes) {
  std::vector<std::string> texts;
  for (size_t position = 0; position < bytes.size();) {
    const size_t space = bytes.find(' ', position);
    const size_t size = space == std::string::npos ? 0 : std::stoull(bytes.substr(position, space - position));
    if (space == std::string::npos || bytes.size() - space - 1 < size) throw std::logic_error("these are no packed texts");
    texts.push_back(bytes.substr(space + 1, size));
    position = space + 1 + size;
  }
  return texts;
}

std::string name_of_rank(const Group& group) {
  return "rank " + std::to_string(group.rank()) + " (" + host_name() + ")";
}

int first_rank_of_machine(Group& group) {
  const std::vector<std::string> hosts = group.gather_to_all(host_name());
  return static_cast<int>(std::ranges::find(hosts, host_name()) - hosts.begin());
}

std::string told_of(const Group& group, const std::exception_ptr& failure) {
  std::vector<std::string> told = {host_name()};
  if (failure) {
    const Failure own(failure);
    told.push_back(Failure(name_of_rank(group) + ": " + own.text, own.exit_code).bytes());
  }
  return packed(told);
}

void throw_first(const Group& group, const std::vector<std::string>& told, const std::exception_ptr& own) {
  std::vector<std::vector<std::string>> all;
  all.reserve(told.size());
  for (const std::string& one : told) all.push_back(unpacked(one));
  const auto failed = std::ranges::find_if(all, [](const auto& one) { return one.size() > 1; });
  if (failed == all.end()) return;
  ended_together = true;
  const auto rank = static_cast<size_t>(group.rank());
  const auto teller = std::ranges::find_if(all, [&](const auto& one) { return one.front() == all[rank].front(); });
  const bool tells = teller == all.begin() + group.rank(), is_own = failed == all.begin() + group.rank();
  if (tells && is_own) std::rethrow_exception(own);
  const Failure first = Failure::of_bytes(failed->at(1));
  throw OtherRankError(tells ? first.text : "", first.exit_code);
}

void end_together(Group& group, const std::exception_ptr& failure) {
  if (!group.is_alone()) return throw_first(group, group.gather_to_all(told_of(group, failure)), failure);
  if (failure) std::rethrow_exception(failure);
}

bool has_ended_together() {
  return ended_together;
}

std::string from_first(Group& group, const std::function<std::string()>& work) {
  if (group.is_alone()) return work();
  std::string bytes;
  std::exception_ptr failure;
  if (group.is_first()) {
    try {
      bytes = packed({work()});
    } catch (...) {
      failure = std::current_exception();
    }
  }
  bytes = group.broadcast(bytes);
  if (bytes.empty()) end_together(group, failure);
  return unpacked(bytes).at(0);
}

void at_first(Group& group, const std::function<void()>& work) {
  from_first(group, [&] {
    work();
    return std::string();
  });
}

}  // namespace lacuna

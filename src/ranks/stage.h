#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ranks/group.h"

/// Work in which a rank may fail while others wait for it: all end with one message.
namespace lacuna {

/// An error that ends all ranks, at one of them that has not met it: "rank 2 (node7): " and its message. The text is empty where the first
/// rank of the same machine tells it.
class OtherRankError : public Error {
 public:
  OtherRankError(const std::string& text, int exit_code) : Error(text), exit_code_(exit_code) {}
  int exit_code() const override { return exit_code_; }

 private:
  int exit_code_;
};

/// An exception as it is told to other ranks.
struct Failure {
  std::string text;
  int exit_code = 1;

  explicit Failure(const std::exception_ptr& exception);
  Failure(std::string message, int code) : text(std::move(message)), exit_code(code) {}
  std::string bytes() const { return std::to_string(exit_code) + " " + text; }
  static Failure of_bytes(const std::string& bytes);
};

/// Puts texts of any bytes into one.
std::string packed(const std::vector<std::string>& texts);
/// Returns what packed() was given.
std::vector<std::string> unpacked(const std::string& bytes);

/// Returns "rank 2 (node7)" for this process: its number and the name of its machine.
std::string name_of_rank(const Group& group);
/// Returns the number of the lowest rank on this machine. Collective.
int first_rank_of_machine(Group& group);

/// Returns what a rank tells the others of its exception, or that it has none.
std::string told_of(const Group& group, const std::exception_ptr& failure);
/// Throws as end_together does, by what told_of gave on all ranks; `own` is this rank's exception.
void throw_first(const Group& group, const std::vector<std::string>& told, const std::exception_ptr& own);

/// Does nothing unless a rank gives an exception: then all of them throw the error of the lowest rank that has failed, itself there and an
/// OtherRankError elsewhere, so that each machine tells it once. Collective.
void end_together(Group& group, const std::exception_ptr& failure);

/// Returns true if the functions here have thrown: then all other ranks end, too, and know why.
bool has_ended_together();

/// Does `work` on each rank, and returns its result when it has succeeded on all; else throws as end_together does. `work` itself must not
/// be collective.
template <class Work>
auto on_all_ranks(Group& group, const Work& work) -> std::invoke_result_t<Work> {
  if (group.is_alone()) return work();
  std::exception_ptr failure;
  if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    end_together(group, failure);
  } else {
    std::optional<std::invoke_result_t<Work>> result;
    try {
      result.emplace(work());
    } catch (...) {
      failure = std::current_exception();
    }
    end_together(group, failure);
    return std::move(*result);
  }
}

/// Does `work` on rank 0, and returns the bytes that it gives on all ranks. Where it fails, all ranks throw. Collective.
std::string from_first(Group& group, const std::function<std::string()>& work);

/// Does `work` on rank 0 and returns on all ranks once it is done. Where it fails, all ranks throw. Collective.
void at_first(Group& group, const std::function<void()>& work);

}  // namespace lacuna

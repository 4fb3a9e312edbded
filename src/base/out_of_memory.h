#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

namespace lacuna {

/// LibTorch reports memory that ran out by several types and, on the CPU and where a library on a GPU has its own, by words alone.
inline bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  constexpr std::string_view kWords[] = {"can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED"};
  return std::ranges::any_of(kWords,
                             [text = std::string_view(error.what())](std::string_view words) { return text.find(words) != text.npos; });
}

}  // namespace lacuna

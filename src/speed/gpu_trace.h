#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What a GPU does while something runs, by LibTorch's profiler (Kineto, which asks CUPTI).
namespace lacuna {

/// A kernel or copy on a GPU, or a call of CUDA's interface by the host.
struct TracedEvent {
  std::string name;
  bool is_on_gpu = false;
  int64_t begin_ns = 0, end_ns = 0;
};

/// Runs `work` under the profiler and returns the events of a GPU; for the CPU, LibTorch's operations.
std::vector<TracedEvent> traced(c10::Device device, const std::function<void()>& work);

/// Sums over events of one name or part.
struct TracedSum {
  std::string name;
  int64_t calls = 0;
  double ms = 0;
};

/// Sums over a trace.
struct GpuTrace {
  double busy_ms = 0;              ///< in which at least one kernel or copy ran
  int64_t launches = 0;            ///< of kernels, by the host
  int64_t synchronizations = 0;    ///< calls in which the host waits for the GPU
  int64_t allocations = 0;         ///< of memory of the GPU or for its copies, with their releases
  std::vector<TracedSum> parts;    ///< time on the GPU by part of the program, in a fixed order; "copies" and "rest" come last
  std::vector<TracedSum> kernels;  ///< time on the GPU by kernel, the longest first

  explicit GpuTrace(const std::vector<TracedEvent>& events);
};

/// Returns the trace as a report, divided by `count` (updates, say), with the busy share of `wall_ms`, which one of them takes untraced.
nlohmann::ordered_json report_of(const GpuTrace& trace, int64_t count, double wall_ms);

}  // namespace lacuna

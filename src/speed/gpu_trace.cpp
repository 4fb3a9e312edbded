#include "speed/gpu_trace.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "speed/timing.h"

namespace lacuna {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

constexpr size_t kKernelsShown = 30;

/// A word in the names of kernels, in lower case, and the part of the program that they belong to; of several words the first counts.
struct NamedPart {
  std::string_view word, part;
};
constexpr char kCopies[] = "copies", kRest[] = "rest";
constexpr std::array<NamedPart, 27> kParts = {{
    {"memcpy", kCopies},
    {"memset", kCopies},
    {"lacuna::cuda", "attention"},
    {"attention", "attention"},
    {"flash", "attention"},
    {"fmha", "attention"},
    {"gemm", "products"},
    {"gemv", "products"},
    {"nvjet", "products"},
    {"cutlass", "products"},
    {"splitk", "products"},
    {"adam", "optimizer"},
    {"multi_tensor", "optimizer"},
    {"norm", "norms"},
    {"rms", "norms"},
    {"activ", "activations"},
    {"gathersums", "embeddings"},
    {"drop", "activations"},
    {"loss", "loss"},
    {"best", "best tokens"},
    {"embed", "embeddings"},
    {"index", "embeddings"},
    {"sort", "embeddings"},
    {"round", "rounding and biases"},
    {"elementwise", "rounding and biases"},
    {"catarray", "rounding and biases"},
    {"reduce", "sums"},
}};

std::string_view part_of(std::string kernel) {
  std::ranges::transform(kernel, kernel.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* const found = std::ranges::find_if(kParts, [&](const NamedPart& named) { return kernel.find(named.word) != kernel.npos; });
  return found == kParts.end() ? kRest : found->part;
}

bool is_launch(std::string_view call) {
  return call.starts_with("cudaLaunchKernel") || call.starts_with("cuLaunchKernel") || call.starts_with("cudaGraphLaunch");
}

/// cudaMemcpy and cudaMemset wait where their asynchronous forms do not.
bool is_synchronization(std::string_view call) {
  return call.find("Synchronize") != call.npos || call == "cudaMemcpy" || call == "cudaMemset";
}

bool is_allocation(std::string_view call) {
  constexpr std::array<std::string_view, 6> kCalls = {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaMallocHost", "cudaFreeHost", "cuMem"};
  return std::ranges::any_of(kCalls, [=](std::string_view start) { return call.starts_with(start); });
}

/// Returns the milliseconds in which at least one of the events on the GPU ran.
double busy_milliseconds(const std::vector<TracedEvent>& events) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  spans.reserve(events.size());
  for (const TracedEvent& event : events)
    if (event.is_on_gpu) spans.emplace_back(event.begin_ns, event.end_ns);
  std::ranges::sort(spans);
  int64_t busy = 0, end = 0;
  for (const auto& [from, to] : spans) {
    busy += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return 1e-6 * static_cast<double>(busy);
}

void add(TracedSum& sum, const TracedEvent& event) {
  ++sum.calls;
  sum.ms += 1e-6 * static_cast<double>(event.end_ns - event.begin_ns);
}

/// Returns the kernel's name without what fills lines: its parameters and long template arguments.
std::string short_name(std::string name) {
  constexpr size_t kLongest = 100;
  if (name.starts_with("void ")) name.erase(0, 5);
  return name.size() <= kLongest ? name : name.substr(0, kLongest) + "...";
}

}  // namespace

std::vector<TracedEvent> traced(c10::Device device, const std::function<void()>& work) {
  const std::set<ActivityType> activities = {device.is_cpu() ? ActivityType::CPU : ActivityType::CUDA};
  const ProfilerConfig config(ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  try {
    work();
    wait_for(device);
  } catch (...) {
    profiler::disableProfiler();
    throw;
  }
  const auto result = profiler::disableProfiler();
  std::vector<TracedEvent> events;
  events.reserve(result->events().size());
  for (const profiler::KinetoEvent& event : result->events())
    events.push_back({event.name(), !c10::Device(event.deviceType()).is_cpu(), static_cast<int64_t>(event.startNs()),
                      static_cast<int64_t>(event.endNs())});
  return events;
}

GpuTrace::GpuTrace(const std::vector<TracedEvent>& events) : busy_ms(busy_milliseconds(events)) {
  for (const NamedPart& named : kParts)
    if (named.part != kCopies && std::ranges::none_of(parts, [&](const TracedSum& sum) { return sum.name == named.part; }))
      parts.push_back({std::string(named.part)});
  for (const char* last : {kCopies, kRest}) parts.push_back({last});
  std::map<std::string, TracedSum> by_name;
  for (const TracedEvent& event : events) {
    if (event.is_on_gpu) {
      add(*std::ranges::find(parts, part_of(event.name), &TracedSum::name), event);
      add(by_name[event.name], event);
    }
    launches += !event.is_on_gpu && is_launch(event.name);
    synchronizations += !event.is_on_gpu && is_synchronization(event.name);
    allocations += !event.is_on_gpu && is_allocation(event.name);
  }
  kernels.reserve(by_name.size());
  for (auto& [name, sum] : by_name) kernels.push_back({short_name(name), sum.calls, sum.ms});
  std::ranges::stable_sort(kernels, std::ranges::greater(), &TracedSum::ms);
}

nlohmann::ordered_json report_of(const GpuTrace& trace, int64_t count, double wall_ms) {
  const auto each = [&](auto amount) { return static_cast<double>(amount) / static_cast<double>(count); };
  const auto table = [&](const std::vector<TracedSum>& sums, size_t most) {
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (size_t i = 0; i < std::min(most, sums.size()); ++i)
      lines.push_back({{"name", sums[i].name}, {"ms", each(sums[i].ms)}, {"calls", each(sums[i].calls)}});
    return lines;
  };
  return {{"gpu_busy_ms", each(trace.busy_ms)},
          {"gpu_busy_share", each(trace.busy_ms) / wall_ms},
          {"launches", each(trace.launches)},
          {"synchronizations", each(trace.synchronizations)},
          {"allocations", each(trace.allocations)},
          {"parts", table(trace.parts, trace.parts.size())},
          {"kernels", table(trace.kernels, kKernelsShown)}};
}

}  // namespace lacuna

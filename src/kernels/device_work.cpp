#include "kernels/device_work.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "base/device.h"
#include "kernels/gpu/kernels.h"
#include "kernels/gpu/started.h"

namespace lacuna {
namespace {

/// Operators that start no kernel, whatever those they call may start: views, allocations, choices.
bool starts_none(std::string_view name) {
  static constexpr std::string_view kNames =
      " alias as_strided chunk contiguous detach detach_ empty empty_like empty_strided expand expand_as flatten full item "
      "lift_fresh narrow new_empty ones permute requires_grad_ reshape resize_ select resolve_conj resolve_neg result_type "
      "slice split squeeze t to unbind transpose _unsafe_view unsqueeze view view_as _reshape_alias size stride numel "
      "is_floating_point _to_copy set_data "
      "_local_scalar_dense zeros ";
  std::string word = " ";
  word += name;
  word += ' ';
  return kNames.find(word) != std::string_view::npos;
}

/// The kernels that an operator starts on a GPU, where the CPU's way through LibTorch does not show their number: 0 = it does.
int64_t kernels_of(std::string_view name) {
  static const std::map<std::string_view, int64_t> counts = {
      {"mm", 1},  {"addmm", 1},         {"_addmm_activation", 1},        {"sum", 1},         {"copy_", 1}, {"zero_", 1},
      {"cat", 1}, {"_foreach_norm", 2}, {"embedding_dense_backward", 8}, {"index_fill_", 1}, {"fill_", 1}};
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

thread_local int counted_depth = 0;  // the operators under way whose kernels are counted already

/// A pause in counting, for the length of an operator's call.
struct OperatorCall : at::ObserverContext {
  bool hides = false;
  int64_t launches_before = 0;
  std::string name;
};

const at::Tensor* first_tensor(const at::RecordFunction& call) {
  if (call.inputs().empty() || !call.inputs().front().isTensor()) return nullptr;
  return &call.inputs().front().toTensor();
}

/// True if the operator waits for a device, as one that gives a number to the host does.
bool waits(std::string_view name, const at::RecordFunction& call) {
  const at::Tensor* const first = first_tensor(call);
  if (first == nullptr || !first->defined()) return false;
  if (name == "_local_scalar_dense") return !first->is_cpu() || gpu::kernels_for(false) != nullptr;
  if (name != "copy_" || !first->is_cpu() || call.inputs().size() < 3) return false;
  return call.inputs()[1].isTensor() && !call.inputs()[1].toTensor().is_cpu() && !call.inputs()[2].toBool();
}

}  // namespace

/// Sees operators and allocations.
class DeviceWorkCounter::Observer : public c10::MemoryReportingInfoBase {
 public:
  static inline Observer* current = nullptr;

  void reportMemoryUsage(void* /*memory*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/, c10::Device /*device*/) override {
    if (bytes <= 0) return;  // it is given back
    ++allocations_;
    allocated_bytes_ += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (counted_depth > 0 || current == nullptr) return nullptr;
    std::string_view name = call.name();
    if (!name.starts_with("aten::")) return nullptr;  // a stretch of the program that someone has named
    name.remove_prefix(6);
    if (waits(name, call)) ++current->synchronizations_;
    if (starts_none(name)) return nullptr;
    auto context = std::make_unique<OperatorCall>();
    context->name = name;
    context->launches_before = current->launches_;
    const at::Tensor* const first = first_tensor(call);
    const bool is_empty = first != nullptr && first->defined() && first->numel() == 0;
    if (is_empty || kernels_of(name) > 0) {
      if (!is_empty) current->add(context->name, kernels_of(name));
      context->hides = true;
      ++counted_depth;
    }
    return context;
  }
  static void end(const at::RecordFunction& /*call*/, at::ObserverContext* context) {
    auto* const call = static_cast<OperatorCall*>(context);
    if (call == nullptr || current == nullptr) return;
    if (call->hides) {
      --counted_depth;
    } else if (current->launches_ == call->launches_before) {
      current->add(call->name, 1);  // it called none that starts kernels: it does so itself
    }
  }

  void add(const std::string& name, int64_t launches) {
    const std::lock_guard<std::mutex> lock(mutex_);
    launches_ += launches;
    of_operators_[name] += launches;
  }
  DeviceWork work() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Copies copies;
    // Where a GPU is emulated, LibTorch copies nothing back, and waits for nothing.
    const int64_t back = copies.back - before_.back, waited = gpu::kernels_for(false) != nullptr ? back : 0;
    return {.launches = launches_ + gpu::started_kernels - ours_before_,
            .synchronizations = synchronizations_ + waited,
            .allocations = allocations_,
            .allocated_bytes = allocated_bytes_,
            .of_operators = of_operators_,
            .copies_there = copies.there - before_.there,
            .bytes_there = copies.bytes_there - before_.bytes_there,
            .copies_back = back,
            .bytes_back = copies.bytes_back - before_.bytes_back};
  }

 private:
  struct Copies {
    int64_t there = device_copies.to_device, bytes_there = device_copies.to_device_bytes;
    int64_t back = device_copies.to_host, bytes_back = device_copies.to_host_bytes;
  };

  std::mutex mutex_;  // a backward pass may run on another thread
  std::atomic<int64_t> launches_ = 0, synchronizations_ = 0, allocations_ = 0, allocated_bytes_ = 0;
  std::map<std::string, int64_t> of_operators_;
  int64_t ours_before_ = gpu::started_kernels;
  Copies before_;
};

/// The registration of an observer with LibTorch.
class DeviceWorkCounter::Registration {
 public:
  Registration()
      : observer(std::make_shared<Observer>()),
        memory_(c10::DebugInfoKind::PROFILER_STATE, observer),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(Observer::begin, Observer::end).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    Observer::current = observer.get();
  }
  ~Registration() {
    Observer::current = nullptr;
    at::removeCallback(handle_);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  const std::shared_ptr<Observer> observer;

 private:
  c10::DebugInfoGuard memory_;
  at::CallbackHandle handle_;
};

DeviceWorkCounter::DeviceWorkCounter() : registration_(std::make_unique<Registration>()) {}
DeviceWorkCounter::~DeviceWorkCounter() = default;

DeviceWork DeviceWorkCounter::work() const {
  return registration_->observer->work();
}

CountedAsOne::CountedAsOne() {
  if (counted_depth++ == 0 && DeviceWorkCounter::Observer::current != nullptr) DeviceWorkCounter::Observer::current->add("emulated", 1);
}
CountedAsOne::~CountedAsOne() {
  --counted_depth;
}

}  // namespace lacuna

#include "speed/gpu_trace.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <stdexcept>

namespace lacuna {
namespace {

constexpr int64_t kMs = 1000000;  // in nanoseconds

TracedEvent on_gpu(const std::string& name, int64_t begin_ms, int64_t end_ms) {
  return {name, true, begin_ms * kMs, end_ms * kMs};
}
TracedEvent by_host(const std::string& name) {
  return {name, false, 0, kMs};
}

TracedSum part(const GpuTrace& trace, const std::string& name) {
  for (const TracedSum& sum : trace.parts)
    if (sum.name == name) return sum;
  return {};
}

TEST(GpuTrace, CountsTimeInWhichSeveralKernelsRunOnce) {
  const GpuTrace trace({on_gpu("c", 12, 13), on_gpu("a", 0, 10), on_gpu("b", 4, 6), on_gpu("b", 9, 11), by_host("cudaLaunchKernel")});
  EXPECT_DOUBLE_EQ(trace.busy_ms, 12);
  ASSERT_EQ(trace.kernels.size(), 3u);
  EXPECT_EQ(trace.kernels[0].name, "a");  // the longest first
  EXPECT_EQ(trace.kernels[1].name, "b");
  EXPECT_EQ(trace.kernels[1].calls, 2);
  EXPECT_DOUBLE_EQ(trace.kernels[1].ms, 4);
}

TEST(GpuTrace, KnowsThePartsOfTheProgramByTheNamesOfKernels) {
  const GpuTrace trace({on_gpu("void lacuna::cuda::(anonymous namespace)::forward_kernel<softmax::RowMap, Bf16>(KernelCall<Bf16>)", 0, 1),
                        on_gpu("void lacuna::gpu::(anonymous namespace)::denormalize<float, float>(...)", 1, 3),
                        on_gpu("nvjet_hsh_128x128_64x4_1x2_h_bz_coopA_NNT", 3, 6),
                        on_gpu("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<LpNormFunctor>", 6, 7),
                        on_gpu("Memcpy DtoH (Device -> Pageable)", 7, 8), on_gpu("something_new", 8, 9)});
  EXPECT_DOUBLE_EQ(part(trace, "attention").ms, 1);
  EXPECT_DOUBLE_EQ(part(trace, "norms").ms, 2);
  EXPECT_DOUBLE_EQ(part(trace, "products").ms, 3);
  EXPECT_DOUBLE_EQ(part(trace, "optimizer").ms, 1);
  EXPECT_DOUBLE_EQ(part(trace, "copies").ms, 1);
  EXPECT_DOUBLE_EQ(part(trace, "rest").ms, 1);
  double sum = 0;
  for (const TracedSum& one : trace.parts) sum += one.ms;
  EXPECT_DOUBLE_EQ(sum, trace.busy_ms);
}

TEST(GpuTrace, CountsWhatTheHostCalls) {
  const GpuTrace trace({by_host("cudaLaunchKernel"), by_host("cudaLaunchKernelExC"), by_host("cuLaunchKernelEx"),
                        by_host("cudaMemcpyAsync"), by_host("cudaStreamSynchronize"), by_host("cudaDeviceSynchronize"),
                        by_host("cudaEventSynchronize"), by_host("cudaMalloc"), by_host("cudaHostAlloc"), by_host("cudaEventRecord")});
  EXPECT_EQ(trace.launches, 3);
  EXPECT_EQ(trace.synchronizations, 3);
  EXPECT_EQ(trace.allocations, 2);
  EXPECT_DOUBLE_EQ(trace.busy_ms, 0);
}

TEST(GpuTrace, IsReportedForOneOfSeveral) {
  const GpuTrace trace({on_gpu("gemm", 0, 6), by_host("cudaLaunchKernel"), by_host("cudaLaunchKernel")});
  const auto report = report_of(trace, 2, 12);
  EXPECT_DOUBLE_EQ(report.at("gpu_busy_ms").get<double>(), 3);
  EXPECT_DOUBLE_EQ(report.at("gpu_busy_share").get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(report.at("launches").get<double>(), 1);
  EXPECT_EQ(report.at("kernels").size(), 1u);
}

TEST(Traced, SeesTheOperationsOfTheCpu) {
  bool has_run = false;
  const std::vector<TracedEvent> events = traced(c10::kCPU, [&] {
    at::mm(at::ones({2, 2}), at::ones({2, 2}));
    has_run = true;
  });
  EXPECT_TRUE(has_run);
  EXPECT_THAT(events, testing::Contains(testing::Field(&TracedEvent::name, "aten::mm")));
  for (const TracedEvent& event : events) {
    EXPECT_FALSE(event.is_on_gpu);
    EXPECT_LE(event.begin_ns, event.end_ns);
  }
}

TEST(Traced, EndsWithAnErrorOfTheWork) {
  EXPECT_THROW(traced(c10::kCPU, [] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(traced(c10::kCPU, [] { at::ones({1}); }).empty());  // another trace can begin
}

TEST(Traced, SeesAGpuAtWork) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU in this build or machine";
  const at::Tensor x = at::ones({64, 64}, at::kCUDA);
  const GpuTrace trace(traced(c10::kCUDA, [&] { at::mm(x, x).sum().item<float>(); }));
  EXPECT_GT(trace.busy_ms, 0);
  EXPECT_GE(trace.launches, 2);
  EXPECT_GE(trace.synchronizations, 1);
}

}  // namespace
}  // namespace lacuna

#include "kernels/mapped_tensor.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

namespace lacuna {
namespace {

constexpr int64_t kCount = 1 << 22;  // floats: 16 MiB

/// Bytes of this process's memory that are in use.
int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Floats 0, 1, ... in a file's map, from the second on.
Tensor numbers_in_file(std::weak_ptr<const void>* map = nullptr) {
  std::FILE* const file = std::tmpfile();
  const Tensor numbers = at::arange(kCount, at::kFloat);
  std::fwrite(numbers.const_data_ptr(), 1, numbers.nbytes(), file);
  std::fflush(file);
  void* const data = mmap(nullptr, numbers.nbytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  std::fclose(file);
  const std::shared_ptr<const void> owner(data, [](const void* begin) { munmap(const_cast<void*>(begin), kCount * sizeof(float)); });
  if (map != nullptr) *map = owner;
  return mapped_tensor(static_cast<float*>(data) + 1, {kCount - 1}, at::kFloat, owner);
}

TEST(MappedTensor, GivesPagesBackAndReadsThemAgain) {
  const Tensor numbers = numbers_in_file();
  const double sum = numbers.sum(at::kDouble).item<double>();
  const int64_t before = resident_bytes();
  give_back_pages(numbers);
  EXPECT_LT(resident_bytes(), before - (int64_t{12} << 20));
  EXPECT_EQ(numbers.sum(at::kDouble).item<double>(), sum);
  EXPECT_EQ(numbers[0].item<float>(), 1);
}

TEST(MappedTensor, KeepsWhatWasWritten) {
  Tensor numbers = numbers_in_file();
  for (const int64_t place : {int64_t{0}, int64_t{5000}, int64_t{5001}, kCount / 2, kCount - 2}) {
    numbers[place].fill_(-7);
    give_back_pages(numbers);
    EXPECT_EQ(numbers[place].item<float>(), -7) << place;
    EXPECT_EQ(numbers[place == 0 ? 1 : place - 2].item<float>(), static_cast<float>(place == 0 ? 2 : place - 1)) << place;
  }
  numbers.zero_();
  give_back_pages(numbers);
  EXPECT_EQ(numbers.abs().max().item<float>(), 0);
}

TEST(MappedTensor, LivesAsLongAsATensorNeedsIt) {
  std::weak_ptr<const void> map;
  Tensor numbers = numbers_in_file(&map);
  Tensor part = numbers.narrow(0, 5, 2);
  numbers.reset();
  EXPECT_FALSE(map.expired());
  EXPECT_EQ(part[0].item<float>(), 6);
  part.reset();
  EXPECT_TRUE(map.expired());
}

TEST(MappedTensor, OtherTensorsKeepTheirNumbers) {
  const Tensor numbers = at::ones({kCount});
  give_back_pages(numbers);
  EXPECT_EQ(numbers.sum().item<float>(), static_cast<float>(kCount));
}

}  // namespace
}  // namespace lacuna

#include "checkpoint/safetensors.h"

#include <chrono>
#include <cstring>

#include "base/random.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

std::string with_header(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

class Safetensors : public testing::Test {
 protected:
  std::string error_of(const std::string& bytes) const {
    write_bytes(file_, bytes);
    return checkpoint_error_of([&] { read_safetensors(FileReader(file_)); });
  }

  ScratchFolder folder_;
  const std::filesystem::path file_ = folder_ / "x.safetensors";
};

TEST_F(Safetensors, ReadsWhatItWrote) {
  const NamedTensors written = {{"double", at::linspace(0, 1, 7, at::kDouble)},
                                {"float", at::linspace(-1, 1, 6).view({2, 3})},
                                {"transposed", at::linspace(-1, 1, 6).view({2, 3}).t()},
                                {"bf16", at::linspace(-1, 1, 5).to(at::kBFloat16)},
                                {"long", at::arange(5)},
                                {"int", at::arange(5, at::kInt)},
                                {"byte", at::arange(3, at::kByte)},
                                {"scalar", at::scalar_tensor(2.5)},
                                {"empty", at::empty({0, 4})}};
  write_safetensors(file_, written);
  const NamedTensors read = read_safetensors(FileReader(file_));
  ASSERT_EQ(read.size(), written.size());
  for (const auto& [name, tensor] : written) {
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
  }
}

TEST_F(Safetensors, TensorsOutliveTheFile) {
  write_safetensors(file_, {{"a", at::ones({1000})}});
  const at::Tensor tensor = read_safetensors(FileReader(file_)).at("a");
  std::filesystem::remove(file_);
  EXPECT_EQ(tensor.sum().item<double>(), 1000);
}

TEST_F(Safetensors, WritingToATensorDoesNotChangeTheFile) {
  write_safetensors(file_, {{"a", at::ones({4})}});
  read_safetensors(FileReader(file_)).at("a").zero_();
  EXPECT_EQ(read_safetensors(FileReader(file_)).at("a").sum().item<double>(), 4);
}

TEST_F(Safetensors, HasTheBytesOfTheFormat) {
  write_safetensors(file_, {{"a", at::full({1, 2}, 1, at::kFloat)}});
  const std::string header = R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(bytes_of(file_), with_header(padded, std::string("\0\0\x80\x3f\0\0\x80\x3f", 8)));
}

TEST_F(Safetensors, ReadsATensorThatIsNotAligned) {
  write_bytes(file_,
              with_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                          std::string("\x07\0\0\x80\x3f", 5)));
  EXPECT_EQ(read_safetensors(FileReader(file_)).at("b").item<float>(), 1);
}

TEST_F(Safetensors, IgnoresMetadata) {
  write_bytes(file_, with_header(R"({"__metadata__":{"format":"pt"}})", ""));
  EXPECT_TRUE(read_safetensors(FileReader(file_)).empty());
}

TEST_F(Safetensors, RefusesFilesTooShortForAHeader) {
  EXPECT_THAT(error_of(""), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(error_of("1234567"), HasSubstr("it has 7 bytes"));
}

TEST_F(Safetensors, RefusesAHeaderLongerThanTheFile) {
  EXPECT_THAT(error_of(std::string(8, '\xff')), HasSubstr("header would have 18446744073709551615 bytes"));
  EXPECT_THAT(error_of(std::string("\x09\0\0\0\0\0\0\0{}", 10)), HasSubstr("header would have 9 bytes"));
}

TEST_F(Safetensors, RefusesAHeaderLongerThanAnyModelNeeds) {
  write_bytes(file_, with_header("{}" + std::string((16 << 20) - 2, ' '), ""));
  EXPECT_TRUE(read_safetensors(FileReader(file_)).empty());
  EXPECT_THAT(error_of(with_header("{}" + std::string((16 << 20) - 1, ' '), "")),
              HasSubstr("its header has 16777217 bytes; expected at most 16777216"));
}

TEST_F(Safetensors, ReadsManyTensorsInATimeThatGrowsAsTheyDo) {
  constexpr int kTensors = 50000;
  std::string header;
  for (int i = 0; i < kTensors; ++i) {
    header += i == 0 ? "{" : ",";
    header += "\"t" + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + ',' +
              std::to_string(i + 1) + "]}";
  }
  write_bytes(file_, with_header(header + "}", std::string(kTensors, 'x')));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(read_safetensors(FileReader(file_)).size(), static_cast<size_t>(kTensors));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "a square of their number takes minutes";
}

TEST_F(Safetensors, RefusesAHeaderThatIsNoObject) {
  EXPECT_THAT(error_of(with_header("[]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(with_header("{\"a\":", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(with_header("{" + std::string(100000, '['), "")), HasSubstr("nested more than 64 levels deep"));
}

TEST_F(Safetensors, RefusesATensorThatIsNotDescribed) {
  for (const char* entry :
       {"7", "[]", R"({"shape":[1],"data_offsets":[0,1]})", R"({"dtype":"U8","data_offsets":[0,1]})", R"({"dtype":"U8","shape":[1]})"})
    EXPECT_THAT(error_of(with_header(R"({"a":)" + std::string(entry) + "}", "x")),
                HasSubstr("tensor \"a\" lacks dtype, shape or data_offsets"));
}

TEST_F(Safetensors, RefusesATypeThatIsNoWord) {
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", "x")),
              HasSubstr("has a dtype that is no string"));
}

TEST_F(Safetensors, RefusesAShapeThatIsNoListOfSixteen) {
  const auto error = [&](const std::string& shape) {
    return error_of(with_header(R"({"a":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,1]}})", "x"));
  };
  EXPECT_THAT(error("1"), HasSubstr("no list of at most 16 sizes"));
  std::string ones = "1";
  for (int i = 1; i < 16; ++i) ones += ",1";
  EXPECT_THAT(error("[" + ones + ",1]"), HasSubstr("no list of at most 16 sizes"));
  write_bytes(file_, with_header(R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})", "x"));
  EXPECT_EQ(read_safetensors(FileReader(file_)).at("a").dim(), 16);
}

TEST_F(Safetensors, RefusesAnUnknownType) {
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", "x")),
              HasSubstr("is of type F8; known: F64"));
}

TEST_F(Safetensors, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4294967296,4294967296,4]", "[9223372036854775807]", "[0,4294967296,4294967296,4294967296]"})
    EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F32","shape":)" + std::string(shape) + R"(,"data_offsets":[0,0]}})", "")),
                HasSubstr("too large"));
}

TEST_F(Safetensors, RefusesNegativeSizesAndOffsets) {
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", "")), HasSubstr("no natural number"));
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", "")),
              HasSubstr("not two natural numbers"));
}

TEST_F(Safetensors, RefusesOffsetsThatDoNotFitTheShape) {
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234")),
              HasSubstr("do not fit its shape"));
}

TEST_F(Safetensors, RefusesTensorsThatOverlapOrLeaveGaps) {
  EXPECT_THAT(error_of(with_header(
                  R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123")),
              HasSubstr("overlaps its neighbour or leaves a gap"));
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12")), HasSubstr("leaves a gap"));
}

TEST_F(Safetensors, RefusesDataOfAnotherSize) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_THAT(error_of(with_header(header, "1")), HasSubstr("need 2 bytes, it holds 1; is it cut short?"));
  EXPECT_THAT(error_of(with_header(header, "123")), HasSubstr("need 2 bytes, it holds 3"));
}

TEST_F(Safetensors, RefusesANameThatComesTwice) {
  EXPECT_THAT(error_of(with_header(
                  R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")),
              HasSubstr("names \"a\" twice"));
  EXPECT_THAT(error_of(with_header(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "1")),
              HasSubstr("names \"shape\" twice"));
}

/// Expects that reading a file gives tensors or a CheckpointError, whatever its bytes.
TEST_F(Safetensors, SurvivesRandomDamage) {
  write_safetensors(file_, {{"first", at::linspace(0, 1, 6).view({2, 3})}, {"second", at::arange(4)}, {"third", at::ones({}, at::kByte)}});
  const std::string whole = bytes_of(file_);
  RandomStream random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes = whole;
    const uint64_t changes = 1 + random.next_below(4);
    for (uint64_t change = 0; change < changes; ++change)
      bytes[random.next_below(bytes.size())] =
          static_cast<char>(trial % 2 == 0 ? random.next_below(256) : "0123456789[]{}\",:-"[random.next_below(18)]);
    if (trial % 5 == 0) bytes.resize(random.next_below(bytes.size()));
    write_bytes(file_, bytes);
    try {
      for (const auto& [name, tensor] : read_safetensors(FileReader(file_))) EXPECT_LE(tensor.nbytes(), bytes.size());
    } catch (const CheckpointError&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace lacuna

#include "train/products.h"

#include <gmock/gmock.h>

#include "kernels/matmul.h"

namespace lacuna {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ResumeWith : public testing::Test {
 protected:
  void TearDown() override { set_matmul_backend(before_); }
  const MatmulBackend before_ = matmul_backend();
  const Products here_ = products_in_use();
};

TEST_F(ResumeWith, TakesUpWhatTheRunBeganWith) {
  for (const MatmulBackend backend : matmul_backends()) {
    EXPECT_THAT(resume_with({name_of(backend), here_.instruction_set, here_.bf16}), IsEmpty());
    EXPECT_EQ(matmul_backend(), backend);
  }
}

TEST_F(ResumeWith, SaysWhatThisMachineHasNot) {
  const std::string note = resume_with({"abacus", here_.instruction_set, here_.bf16});
  EXPECT_THAT(note, HasSubstr("abacus"));
  EXPECT_THAT(note, HasSubstr("from here on by " + here_.fp32));
  EXPECT_EQ(matmul_backend(), before_);
  EXPECT_THAT(resume_with({here_.fp32, "slide rule", here_.bf16}), HasSubstr("slide rule for the rest"));
  EXPECT_THAT(resume_with({here_.fp32, here_.instruction_set, "counting frame"}), HasSubstr("counting frame for bf16"));
}

TEST_F(ResumeWith, UsesOurOwnLoopsInPlaceOfOneDnn) {
  const std::string note = resume_with({"onednn", here_.instruction_set, "mkl"});
  EXPECT_EQ(matmul_backend(), MatmulBackend::kBlocks);
  EXPECT_THAT(note, HasSubstr("by onednn for fp32, mkl for bf16"));
  EXPECT_THAT(note, HasSubstr("from here on by blocks for fp32"));
}

TEST_F(ResumeWith, LeavesARunAloneOfWhichNothingIsKnown) {
  EXPECT_THAT(resume_with({here_.fp32, here_.instruction_set, ""}), IsEmpty()) << "from before bf16 was noted";
  EXPECT_THAT(resume_with({}), IsEmpty());
  EXPECT_EQ(products_in_use(), here_);
}

}  // namespace
}  // namespace lacuna

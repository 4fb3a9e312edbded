#include "kernels/profile.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace lacuna {
namespace {

void work_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Profile, CountsEachMomentOnceForTheInnermostPart) {
  Profile profile;
  {
    const TimedPart loss(ProfilePart::kLoss);
    work_for(5);
    {
      const TimedPart product(ProfilePart::kProducts);
      work_for(40);
    }
  }
  EXPECT_GE(profile.seconds(ProfilePart::kProducts, false), 0.040);
  EXPECT_GE(profile.seconds(ProfilePart::kLoss, false), 0.005);
  EXPECT_LT(profile.seconds(ProfilePart::kLoss, false), profile.seconds(ProfilePart::kProducts, false));
}

TEST(Profile, SumsCallsAndWork) {
  Profile profile;
  for (int i = 0; i < 3; ++i) const TimedPart product(ProfilePart::kProducts, 100);
  EXPECT_EQ(profile.calls(ProfilePart::kProducts, false), 3);
  EXPECT_EQ(profile.work(ProfilePart::kProducts, false), 300);
  EXPECT_EQ(profile.calls(ProfilePart::kNorm, false), 0);
}

TEST(Profile, CountsProductsByTheirShape) {
  Profile profile;
  const ProductShape shape = {4, 3, 5, false, true, Precision::kFp32, false};
  ProductShape other = shape;
  other.precision = Precision::kBf16;
  for (const ProductShape& each : {shape, other, shape}) const TimedProduct product(each);
  profile.end();
  const TimedProduct unseen(shape);
  EXPECT_EQ(profile.products(), (std::map<ProductShape, int64_t>{{shape, 2}, {other, 1}}));
  EXPECT_EQ(profile.work(ProfilePart::kProducts, false), 3 * 2 * 4 * 3 * 5);
}

TEST(Profile, KeepsForwardAndBackwardApart) {
  Profile profile;
  {
    const TimedBackward backward;
    const TimedPart norm(ProfilePart::kNorm);
  }
  EXPECT_EQ(profile.calls(ProfilePart::kNorm, true), 1);
  EXPECT_EQ(profile.calls(ProfilePart::kNorm, false), 0);
}

TEST(Profile, GivesTheRestWhatNobodyTimed) {
  Profile profile;
  work_for(5);
  { const TimedPart next(ProfilePart::kNorm); }  // up to here
  EXPECT_GE(profile.seconds(ProfilePart::kRest, false), 0.005);
}

TEST(Profile, DoesNotSeeOtherThreads) {
  Profile profile;
  std::thread([] { const TimedPart product(ProfilePart::kProducts); }).join();
  EXPECT_EQ(profile.calls(ProfilePart::kProducts, false), 0);
}

TEST(Profile, IsOverWhenItIsGone) {
  { const Profile profile; }
  const TimedPart product(ProfilePart::kProducts);  // must not touch what is gone
}

TEST(Profile, EveryPartHasANameOfItsOwn) {
  for (const ProfilePart a : kProfileParts)
    for (const ProfilePart b : kProfileParts) EXPECT_EQ(a == b, std::string(name_of(a)) == name_of(b));
}

}  // namespace
}  // namespace lacuna

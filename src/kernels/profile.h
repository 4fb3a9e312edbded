#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>

#include "base/precision.h"

/// Measures where the time of a training step goes.
namespace lacuna {

/// The parts of a training step. `kRest` is everything that is not timed.
enum class ProfilePart { kRest, kProducts, kLinear, kAttention, kNorm, kActivation, kEmbedding, kLoss, kOptimizer, kDataWait };
inline constexpr ProfilePart kProfileParts[] = {
    ProfilePart::kProducts,  ProfilePart::kLinear, ProfilePart::kAttention, ProfilePart::kNorm,     ProfilePart::kActivation,
    ProfilePart::kEmbedding, ProfilePart::kLoss,   ProfilePart::kOptimizer, ProfilePart::kDataWait, ProfilePart::kRest};
/// Returns the part's name in reports: `products`, `attention`, ...
const char* name_of(ProfilePart part);

/// A matrix product [rows, depth] x [depth, columns]; a transposed factor is stored by columns. `adds` = the result is added to.
struct ProductShape {
  int64_t rows, depth, columns;
  bool a_is_transposed, b_is_transposed;
  Precision precision;
  bool adds;

  double operations() const { return 2.0 * static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(columns); }
  bool operator==(const ProductShape&) const = default;
  bool operator<(const ProductShape& other) const { return key() < other.key(); }

 private:
  std::array<int64_t, 7> key() const {
    return {rows, depth, columns, a_is_transposed, b_is_transposed, static_cast<int64_t>(precision), adds};
  }
};

/// Divides the time of the thread that constructs it among the parts that TimedPart objects name. Each moment counts once, for the
/// innermost part: a product inside the loss counts as a product. A thread has at most one Profile at a time.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Stops counting.
  void end();

  /// Seconds spent in the part, up to the last change of part.
  double seconds(ProfilePart part, bool is_backward) const { return part_at(part, is_backward).seconds; }
  int64_t calls(ProfilePart part, bool is_backward) const { return part_at(part, is_backward).calls; }
  /// Sum of the work that TimedPart objects were given.
  double work(ProfilePart part, bool is_backward) const { return part_at(part, is_backward).work; }
  /// How often each matrix product was computed.
  const std::map<ProductShape, int64_t>& products() const { return products_; }

 private:
  friend class TimedPart;
  friend class TimedProduct;
  friend class TimedBackward;
  using Clock = std::chrono::steady_clock;
  struct Sum {
    double seconds = 0, work = 0;
    int64_t calls = 0;
  };

  ProfilePart enter(ProfilePart part, double work);
  void leave(ProfilePart outer);
  void set_backward(bool is_backward);
  void count_time();
  Sum& sum() { return sums_[is_backward_][static_cast<size_t>(part_)]; }
  const Sum& part_at(ProfilePart part, bool is_backward) const { return sums_[is_backward][static_cast<size_t>(part)]; }

  std::array<std::array<Sum, std::size(kProfileParts)>, 2> sums_;
  std::map<ProductShape, int64_t> products_;
  ProfilePart part_ = ProfilePart::kRest;
  bool is_backward_ = false;
  Clock::time_point since_;
};

/// Counts the time of its lifetime for a part in this thread's Profile. Without a Profile it does nothing.
class TimedPart {
 public:
  /// `work` is the number of operations or bytes, whichever measures the part.
  explicit TimedPart(ProfilePart part, double work = 0) : profile_(current_) {
    if (profile_ != nullptr) outer_ = profile_->enter(part, work);
  }
  ~TimedPart() {
    if (profile_ != nullptr) profile_->leave(outer_);
  }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

 private:
  friend class Profile;
  friend class TimedBackward;
  friend class TimedProduct;
  static inline thread_local Profile* current_ = nullptr;

  Profile* profile_;
  ProfilePart outer_ = ProfilePart::kRest;
};

/// A TimedPart for one matrix product.
class TimedProduct : public TimedPart {
 public:
  explicit TimedProduct(const ProductShape& shape) : TimedPart(ProfilePart::kProducts, shape.operations()) {
    if (profile_ != nullptr) ++profile_->products_[shape];
  }
};

/// Counts the time of its lifetime for the backward pass in this thread's Profile.
class TimedBackward {
 public:
  TimedBackward() : profile_(TimedPart::current_) {
    if (profile_ != nullptr) profile_->set_backward(true);
  }
  ~TimedBackward() {
    if (profile_ != nullptr) profile_->set_backward(false);
  }
  TimedBackward(const TimedBackward&) = delete;
  TimedBackward& operator=(const TimedBackward&) = delete;

 private:
  Profile* profile_;
};

}  // namespace lacuna

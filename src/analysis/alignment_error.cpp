#include "analysis/alignment_error.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace lacuna {
namespace {

int64_t count_common(const Links& links, const Links& sorted) {
  return std::count_if(links.begin(), links.end(),
                       [&](const Link& link) { return std::binary_search(sorted.begin(), sorted.end(), link); });
}

std::optional<double> ratio(int64_t part, int64_t whole) {
  if (whole == 0) return {};
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// A draw of the Poisson distribution of mean 1.
int32_t poisson(double unit) {
  double share = std::exp(-1.0);  // of k
  int32_t k = 0;
  for (double below = share; unit >= below && k < 16; below += share) share /= ++k;
  return k;
}

}  // namespace

LinkCounts LinkCounts::of(const Links& links, const GoldLinks& gold) {
  return {static_cast<int64_t>(links.size()), static_cast<int64_t>(gold.sure.size()), count_common(links, gold.sure),
          count_common(links, gold.possible)};
}

void LinkCounts::add(const LinkCounts& other) {
  links += other.links;
  sure += other.sure;
  in_sure += other.in_sure;
  in_possible += other.in_possible;
}

std::optional<double> LinkCounts::error_rate() const {
  const auto right = ratio(in_sure + in_possible, links + sure);
  if (!right) return {};
  return 1 - *right;
}

std::optional<double> LinkCounts::precision() const {
  return ratio(in_possible, links);
}

std::optional<double> LinkCounts::recall() const {
  return ratio(in_sure, sure);
}

AlignmentErrors::AlignmentErrors(size_t num_systems, int64_t num_samples, uint64_t seed)
    : num_samples_(static_cast<size_t>(num_samples)), seed_(seed), totals_(num_systems), samples_(num_systems * num_samples_) {}

void AlignmentErrors::add(int64_t sentence, const std::vector<LinkCounts>& counts) {
  std::vector<int32_t> times(num_samples_);
  RandomStream random(random_key(seed_, RandomUse::kBootstrap, static_cast<uint64_t>(sentence), 0));
  for (int32_t& one : times) one = poisson(random.next_unit());
  for (size_t system = 0; system < totals_.size(); ++system) {
    const LinkCounts& count = counts[system];
    totals_[system].add(count);
    const int64_t right = count.in_sure + count.in_possible, all = count.links + count.sure;
    Sample* const samples = samples_.data() + system * num_samples_;
    for (size_t i = 0; i < num_samples_; ++i) {
      samples[i].right += times[i] * right;
      samples[i].all += times[i] * all;
    }
  }
  ++sentences_;
}

std::optional<Interval> AlignmentErrors::interval(size_t system) const {
  std::vector<double> rates;
  for (size_t i = 0; i < num_samples_; ++i) {
    const Sample& sample = samples_[system * num_samples_ + i];
    if (sample.all > 0) rates.push_back(1 - static_cast<double>(sample.right) / static_cast<double>(sample.all));
  }
  if (rates.empty()) return {};
  std::sort(rates.begin(), rates.end());
  const auto at = [&](double share) { return rates[static_cast<size_t>(std::llround(share * static_cast<double>(rates.size() - 1)))]; };
  return Interval{at(.025), at(.975)};
}

}  // namespace lacuna

#include "train/gradient_exchange.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lacuna {

/// Called by autograd once a backward pass has added its gradient of a parameter.
class GradientExchange::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientExchange& exchange, size_t parameter) : exchange_(exchange), parameter_(parameter) {}
  void operator()(const Tensor& /*parameter*/) override { exchange_.accumulated(parameter_); }

 private:
  GradientExchange& exchange_;
  size_t parameter_;
};

GradientExchange::GradientExchange(const FlatParameters& parameters, const Shard& shard, at::ScalarType wire)
    : parameters_(parameters),
      shard_(shard),
      wire_(wire),
      gradients_(parameters.new_buffer()),
      received_(at::empty({shard.group().size() - 1, shard.own_size()}, gradients_.options().dtype(wire))),
      buckets_of_(parameters.num_tensors()),
      num_parameters_(shard.slices().num_buckets()),
      is_taken_(parameters.num_tensors()) {
  for (size_t p = 0; p < parameters_.num_tensors(); ++p) {
    const Slice place = parameters_.place(p);
    for (size_t bucket = 0; bucket < shard_.slices().num_buckets(); ++bucket) {
      const Slice other = shard_.slices().bucket(bucket);
      if (other.end <= place.begin || place.end <= other.begin) continue;
      buckets_of_[p].push_back(bucket);
      ++num_parameters_[bucket];
    }
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_.tensor(p), std::make_unique<Hook>(*this, p));
  }
  missing_ = num_parameters_;
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (size_t bucket = shard_.slices().first_bucket(g + 1); bucket-- > shard_.slices().first_bucket(g);) order_.push_back(bucket);
}

GradientExchange::~GradientExchange() {
  for (size_t p = 0; p < parameters_.num_tensors(); ++p) torch::autograd::impl::set_post_acc_grad_hooks(parameters_.tensor(p), nullptr);
}

void GradientExchange::expect_last(bool is_last) {
  is_last_ = is_last && overlaps_;
}

void GradientExchange::accumulated(size_t parameter) {
  if (is_taken_[parameter] != 0)
    parameters_.tensor(parameter).mutable_grad() = Tensor();  // of a part of a batch that counts whole already
  else if (is_last_)
    take(parameter);
}

void GradientExchange::take(size_t parameter) {
  parameters_.take_gradient(parameter, gradients_);
  is_taken_[parameter] = 1;
  ++num_taken_;
  for (const size_t bucket : buckets_of_[parameter]) --missing_[bucket];
  while (transfers_.size() < order_.size() && missing_[order_[transfers_.size()]] == 0) start(order_[transfers_.size()]);
}

/// Sends each other rank what it owns of the bucket, and receives what this one owns.
void GradientExchange::start(size_t bucket) {
  Group& group = shard_.group();
  const Shard::Part* const own = shard_.part_of(bucket);
  Messages sent, received;
  for (int step = 1; step < group.size(); ++step) {  // each rank begins with another one
    const int other = (group.rank() + step) % group.size();
    if (own != nullptr) {
      const Tensor row = received_[other < group.rank() ? other : other - 1];
      received.push_back({row.slice(0, own->own_begin, own->own_end()), other});
    }
    if (shard_.slices().slice(bucket, other).is_empty()) continue;
    Tensor slice = shard_.slice_of(gradients_, bucket, other);
    if (wire_ != slice.scalar_type()) on_the_wire_.push_back(slice = slice.to(wire_));
    sent.push_back({slice, other});
  }
  transfers_.push_back(group.exchange(sent, received, shard_.tag(Shard::Use::kGradients, bucket)));
}

void GradientExchange::finish() {
  for (size_t p = parameters_.num_tensors(); p-- > 0;)
    if (is_taken_[p] == 0) take(p);
  for (size_t i = 0; i < order_.size(); ++i) {
    transfers_[i]->wait();
    if (const Shard::Part* const own = shard_.part_of(order_[i])) add(*own);
  }
  transfers_.clear();
  on_the_wire_.clear();
  missing_ = num_parameters_;
  std::fill(is_taken_.begin(), is_taken_.end(), 0);
  num_taken_ = 0;
  is_last_ = false;
}

/// Adds in the order of ranks, whichever of them this one is.
void GradientExchange::add(const Shard::Part& part) const {
  Tensor own = gradients_.slice(0, part.slice.begin, part.slice.end);
  const int rank = shard_.group().rank(), size = shard_.group().size();
  const auto of_rank = [&](int r) -> Tensor {
    return r == rank ? own : received_[r < rank ? r : r - 1].slice(0, part.own_begin, part.own_end());
  };
  Tensor sum = of_rank(0).to(own.scalar_type());
  for (int r = 1; r + 1 < size; ++r) sum.add_(of_rank(r));
  at::add_out(own, sum, of_rank(size - 1));
}

}  // namespace lacuna

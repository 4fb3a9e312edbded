#include "train/gradient_exchange.h"

#include <ATen/ATen.h>

namespace lacuna {

GradientExchange::GradientExchange(const FlatParameters& parameters, const Shard& shard)
    : parameters_(parameters),
      shard_(shard),
      gradients_(parameters.new_buffer()),
      received_(at::empty({shard.group().size() - 1, shard.own_size()}, gradients_.options())) {}

void GradientExchange::sum() {
  Group& group = shard_.group();
  const Slices& slices = shard_.slices();
  parameters_.take_gradients(gradients_);
  std::vector<Transfers> incoming(slices.num_buckets());
  Transfers outgoing;
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (const Shard::Part& part : shard_.parts(g))
      for (int other = 0; other < group.size(); ++other)
        if (other != group.rank()) {
          const Tensor row = received_[other < group.rank() ? other : other - 1].slice(0, part.own_begin, part.own_end());
          incoming[part.bucket].push_back(group.receive(row, other, shard_.tag(Shard::Use::kGradients, part.bucket)));
        }
  for (size_t bucket = 0; bucket < slices.num_buckets(); ++bucket)
    for (int step = 1; step < group.size(); ++step) {  // each rank begins with another one
      const int other = (group.rank() + step) % group.size();
      if (!slices.slice(bucket, other).is_empty())
        outgoing.push_back(group.send(shard_.slice_of(gradients_, bucket, other), other, shard_.tag(Shard::Use::kGradients, bucket)));
    }
  for (size_t g = 0; g < parameters_.groups().size(); ++g)
    for (const Shard::Part& part : shard_.parts(g)) {
      wait_for(incoming[part.bucket]);
      add(part);
    }
  wait_for(outgoing);
}

void GradientExchange::add(const Shard::Part& part) const {
  Tensor own = gradients_.slice(0, part.slice.begin, part.slice.end);
  const int rank = shard_.group().rank(), size = shard_.group().size();
  const auto of_rank = [&](int r) -> Tensor {
    return r == rank ? own : received_[r < rank ? r : r - 1].slice(0, part.own_begin, part.own_end());
  };
  Tensor sum = of_rank(0);
  for (int r = 1; r + 1 < size; ++r) sum.add_(of_rank(r));
  at::add_out(own, sum, of_rank(size - 1));
}

}  // namespace lacuna

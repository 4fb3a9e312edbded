#include "model/residual_stream.h"

namespace lacuna {

ResidualStream::ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout,
                               const ForwardContext& context)
    : place_(place), norms_(std::move(norms)), dropout_(dropout), context_(context), sum_(embedded.values), normed_(std::move(embedded)) {
  if (place_ == NormPlace::kPre) normed_ = normed_.with(residual_norm(sum_, {}, {}, next_norm()).normed);
}

void ResidualStream::add(const Tensor& output, const DropoutSite& site) {
  const Dropout dropout = site.dropout(dropout_, normed_.shape, context_);
  const ResidualNorm result = residual_norm(sum_, output, dropout, next_norm());
  sum_ = place_ == NormPlace::kPre ? result.sum : result.normed;
  normed_ = normed_.with(result.normed);
}

}  // namespace lacuna

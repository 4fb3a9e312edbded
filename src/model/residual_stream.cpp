#include "model/residual_stream.h"

namespace lacuna {

ResidualStream::ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout,
                               const ForwardContext& context)
    : place_(place), norms_(std::move(norms)), dropout_(dropout), context_(context), sum_(embedded.values), normed_(std::move(embedded)) {
  if (place_ != NormPlace::kPre) return;
  const ResidualEnd end = next_end({});
  take(residual_norm(end, {}), end.norm);
}

ResidualEnd ResidualStream::next_end(const Dropout& dropout) {
  const Norm& norm = *norms_[next_++];
  const bool is_for_linear = place_ == NormPlace::kPre && next_ < norms_.size();  // the others' rows are the residual too, or the result
  return {sum_, dropout, norm.weights(), is_for_linear ? context_.precision : FactorPrecision::kFp32};
}

void ResidualStream::add(const SubLayerOutput& output, const DropoutSite& site) {
  const ResidualEnd end = next_end(site.dropout(dropout_, normed_.shape, context_));
  const ResidualNorm result = output(end);
  sum_ = place_ == NormPlace::kPre ? result.sum : result.normed;
  take(result, end.norm);
}

void ResidualStream::take(const ResidualNorm& result, const NormWeights& norm) {
  normed_ = normed_.with(result.normed);
  const bool is_result = next_ == norms_.size();  // which many may read: made again by each, it would cost more than it takes
  if (at::GradMode::is_enabled() && !is_result) normed_.source = std::make_shared<const NormSource>(NormSource{result.sum.detach(), norm});
}

}  // namespace lacuna

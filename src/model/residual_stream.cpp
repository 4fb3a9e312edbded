#include "model/residual_stream.h"

namespace lacuna {

ResidualStream::ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout,
                               const ForwardContext& context)
    : place_(place), norms_(std::move(norms)), dropout_(dropout), context_(context), sum_(embedded.values), normed_{std::move(embedded)} {
  if (is_pre_norm()) take(residual_norm(next_end(Dropout()), {}));
}

ResidualEnd ResidualStream::next_end(const Dropout& dropout) {
  const Norm& norm = *norms_[next_++];
  const bool only_linear_layers_read = is_pre_norm() && !is_at_end();  // other rows are the residual too, or the result
  return {sum_, dropout, norm.weights(), only_linear_layers_read ? context_.precision : Precision::kFp32};
}

void ResidualStream::take(const ResidualNorm& result) {
  sum_ = is_pre_norm() ? result.sum : result.normed;
  normed_.values = result.normed;
  normed_.source = nullptr;
  // The result may have many readers: computed again by each, it would cost more time than keeping it costs memory.
  if (at::GradMode::is_enabled() && !is_at_end())
    normed_.source = std::make_shared<const NormSource>(NormSource{result.sum.detach(), norms_[next_ - 1]->weights()});
}

}  // namespace lacuna

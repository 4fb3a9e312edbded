#include "model/residual_stream.h"

#include "model/activation_watch.h"

namespace lacuna {
namespace {

/// Returns the name of the sub-layer whose output is dropped there: "encoder.layers.0.feed_forward".
std::string sub_layer_name(const DropoutSite& site) {
  const std::string layer = (site.stack == Stack::kEncoder ? "encoder.layers." : "decoder.layers.") + std::to_string(site.layer);
  if (site.place == DropoutPlace::kSelfAttention) return layer + ".self_attention";
  return layer + (site.place == DropoutPlace::kCrossAttention ? ".cross_attention" : ".feed_forward");
}

}  // namespace

ResidualStream::ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout,
                               const ForwardContext& context)
    : place_(place), norms_(std::move(norms)), dropout_(dropout), context_(context), sum_(embedded.values), normed_{std::move(embedded)} {
  if (is_pre_norm()) take(residual_norm(next_end(Dropout()), {}));
}

ResidualEnd ResidualStream::next_end(const Dropout& dropout) {
  const Norm& norm = *norms_[next_++];
  const bool only_linear_layers_read = is_pre_norm() && !is_at_end();  // other rows are the residual too, or the result
  const Precision of_products = at::GradMode::is_enabled() ? context_.precision : context_.decoding;
  return {sum_, dropout, norm.weights(), only_linear_layers_read ? of_products : Precision::kFp32};
}

void ResidualStream::show(const ResidualNorm& result) const {
  if (context_.watch == nullptr || !site_) return;
  context_.watch->see(sub_layer_name(*site_) + ": sum of its output and the residual", result.sum);
  context_.watch->see(sub_layer_name(*site_) + ": norm of that sum", result.normed);
}

void ResidualStream::take(const ResidualNorm& result) {
  show(result);
  sum_ = is_pre_norm() ? result.sum : result.normed;
  normed_.values = result.normed;
  normed_.source = nullptr;
  // The result may have many readers: computed again by each, it would cost more time than keeping it costs memory.
  if (at::GradMode::is_enabled() && !is_at_end())
    normed_.source = std::make_shared<const NormSource>(NormSource{result.sum.detach(), norms_[next_ - 1]->weights()});
}

}  // namespace lacuna

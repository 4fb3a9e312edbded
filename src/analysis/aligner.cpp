#include "analysis/aligner.h"

namespace lacuna {

std::string text_of(const AlignmentChoice& choice) {
  return "layer " + std::to_string(choice.layer) + ", " + (choice.head ? "head " + std::to_string(*choice.head) : "average of heads") +
         ", " + name_of(choice.step);
}

std::vector<Links> align_pairs(const AnalyzedModel& analyzed, const std::vector<SentencePair>& pairs, const AlignmentChoice& choice,
                               LinkUnit unit, int64_t batch_tokens) {
  Transformer& model = analyzed.model;
  std::vector<Links> links(pairs.size());
  const auto wanted = [&](int layer, AttentionSite site) { return layer == choice.layer && site == AttentionSite::kCross; };
  for (const auto& batch : batches_of(pairs, batch_tokens)) {
    const auto observe = [&](const CallWeights& call) {
      for (size_t b = 0; b < batch.size(); ++b) {
        const AlignmentUnits units =
            unit == LinkUnit::kWord ? word_units(*batch[b], analyzed.vocabularies, analyzed.joiner) : piece_units(*batch[b]);
        const std::vector<UnitWeights> weights = unit_weights_of_heads(call, static_cast<int64_t>(b), units, choice.step);
        const auto chosen = static_cast<size_t>(choice.head.value_or(call.num_heads));
        links[static_cast<size_t>(batch[b] - pairs.data())] = weights[chosen].links();
      }
    };
    const RaggedPairs ragged = ragged_pairs(batch, model.device());
    WeightGatherer gatherer(*ragged.src.shape, *ragged.tgt.shape, model.options().num_heads, false, observe, wanted);
    force_decode(model, ragged, gatherer);
  }
  return links;
}

AlignmentChoice best_choice(const ModelAnalysis& analysis, double& error_rate) {
  AlignmentChoice best;
  error_rate = 2;
  for (int layer = 0; layer < analysis.decoder_layers; ++layer) {
    for (int64_t head = 0; head <= analysis.num_heads; ++head) {
      for (const AlignmentStep step : kAlignmentSteps) {
        const double rate = analysis.alignment->total(analysis.system_of(layer, head, step)).error_rate().value_or(1);
        if (rate >= error_rate) continue;
        error_rate = rate;
        best = {layer, head == analysis.num_heads ? std::nullopt : std::optional(head), step};
      }
    }
  }
  return best;
}

}  // namespace lacuna

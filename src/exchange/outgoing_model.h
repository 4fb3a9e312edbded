#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "exchange/file_sink.h"

namespace lacuna {

/// Positions in the tables of models that leave. Sentences of more tokens are beyond what other programs take.
inline constexpr int64_t kOutgoingPositions = 1024;

/// A model on its way into another format, with softmax attention everywhere, on the CPU in float.
struct OutgoingModel {
  Options options;
  Vocabularies vocabularies;
  CheckpointInfo info;
  NamedTensors weights;  ///< by src/model/README.md

  bool has_shared_embeddings() const { return options.model.tie_embeddings == TieEmbeddings::kAll; }
  const Tensor& src_embedding() const { return weights.at(has_shared_embeddings() ? "embedding.weight" : "src_embedding.weight"); }
  const Tensor& tgt_embedding() const { return weights.at(has_shared_embeddings() ? "embedding.weight" : "tgt_embedding.weight"); }
  /// Returns the matrix [V, D] that makes logits.
  const Tensor& output() const;
  /// Returns what is added to logits, [V]: zeros where the model has no bias.
  Tensor output_bias() const;
  /// Returns what is added to the embeddings of a side ("src", "tgt"): [P, D], zeros where the model has no positions.
  Tensor positions(const std::string& side) const;
};

/// Loads a model. Throws CheckpointError, naming the key and what to do, if its attention is not softmax.
OutgoingModel load_outgoing(const std::string& path, const std::vector<std::string>& overrides);

/// Returns the model with concatenated positions: if they were interleaved, the features of its residual stream in another order, those of
/// even numbers first. It computes the same.
OutgoingModel with_concatenated_positions(OutgoingModel model);

/// Throws CheckpointError: `key` of the model has a value that `format` cannot hold; `remedy` says what to do.
[[noreturn]] void refuse_key(const std::string& key, const std::string& value, const std::string& format, const std::string& remedy);

/// Throws CheckpointError unless both sides cut text by SentencePiece.
void require_sentencepiece(const OutgoingModel& model, const std::string& format);

/// Returns the pieces of a vocabulary by their ids. Throws CheckpointError for two of one name: formats that list pieces know them by name.
std::vector<std::string> pieces_of(const Vocabulary& vocabulary);

/// Adds source.spm and target.spm, the SentencePiece models of both sides.
void add_sentencepiece_models(FileSink& files, const Vocabularies& vocabularies);

}  // namespace lacuna

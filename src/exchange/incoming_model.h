#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "config/config_node.h"

namespace lacuna {

inline constexpr float kNeverCounted = -1e4F;  ///< a logit with this bias has no probability in float

/// The options of a model that comes in, by key, as a configuration has them.
class IncomingOptions {
 public:
  /// `file`: what errors about a value name.
  explicit IncomingOptions(std::string file) : file_(std::move(file)) {}

  void set(const std::string& section, const std::string& key, const std::string& value);
  void set(const std::string& section, const std::string& key, int64_t value) { set(section, key, std::to_string(value)); }
  void set_list(const std::string& section, const std::string& key, const std::vector<std::string>& values);
  /// Throws ConfigError, naming the file, for values that a model cannot have.
  Options read() const;

 private:
  void set_node(const std::string& section, const std::string& key, ConfigNode value);

  std::string file_;
  ConfigNode tree_;
};

/// A model on its way in.
struct IncomingModel {
  std::string kind;  ///< what it was, for its origin: "Marian", "Hugging Face transformers, marian"
  IncomingOptions options;
  NamedTensors weights;  ///< by src/model/README.md, in float
  Vocabularies vocabularies;
};

/// Pieces by our ids, and the rows of a matrix that they have in a model that comes in.
struct PieceOrder {
  static constexpr int64_t kNoRow = -1;  ///< of a piece that was made up: a row of zeros

  std::vector<std::string> pieces;
  std::vector<int64_t> rows;

  /// Returns the rows of a matrix or vector in the order of our ids.
  Tensor arranged(const Tensor& table) const;
};

/// Puts pieces, given by ids that need not follow one another, in our order: unk, the decoder's start, eos, then the others by id. Where no
/// piece is `start` alone, one is made up.
PieceOrder order_of(const std::map<int64_t, std::string>& pieces, int64_t unk, std::optional<int64_t> start, int64_t eos);

/// Returns the pieces that stand for languages: __de__, deu_Latn or >>deu<<.
std::vector<std::string> language_tags(const std::vector<std::string>& pieces);

/// Throws UsageError unless the tag that `flag` gives is empty or a piece beside unk, bos and eos.
void require_tag(const std::string& tag, const std::string& flag, const PieceOrder& order);

/// What cuts text, and the ids of its pieces, of one side.
struct IncomingVocabulary {
  std::string spm;  ///< bytes of a SentencePiece model
  std::string place;
  std::vector<std::string> pieces;  ///< by our ids
  std::string start = {};           ///< see PieceList
};

/// Makes the vocabularies. SentencePiece models that have the ids of the pieces themselves stay as they are.
Vocabularies vocabularies_of(const IncomingVocabulary& src, const IncomingVocabulary& tgt);

/// The tensors of a model that comes in, each of which must be taken.
class IncomingWeights {
 public:
  IncomingWeights(NamedTensors tensors, std::string place) : tensors_(std::move(tensors)), place_(std::move(place)) {}

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Takes a tensor, in float, of this shape. Throws DataError naming place and tensor if it is not there, or of another shape or no float.
  Tensor take(const std::string& name, const std::vector<int64_t>& shape);
  /// Takes what the model does not need: what can be computed, or is there twice.
  void leave(const std::string& name) { taken_.insert(name); }
  /// Throws DataError for tensors that nothing has taken: a part of the model that would be missing.
  void require_all_taken() const;

 private:
  NamedTensors tensors_;
  std::set<std::string> taken_;
  std::string place_;
};

}  // namespace lacuna

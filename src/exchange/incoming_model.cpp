#include "exchange/incoming_model.h"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

#include "base/error.h"
#include "base/spelling.h"
#include "config/load.h"
#include "text/normalization.h"
#include "text/piece_list.h"

namespace lacuna {

void IncomingOptions::set_node(const std::string& section, const std::string& key, ConfigNode value) {
  const ConfigNode* const found = tree_.find(section);
  ConfigNode map = found == nullptr ? ConfigNode::map({}, {file_, 0}) : *found;
  map.set(key, std::move(value));
  tree_.set(section, std::move(map));
}

void IncomingOptions::set(const std::string& section, const std::string& key, const std::string& value) {
  set_node(section, key, ConfigNode::scalar(value, {file_, 0}));
}

void IncomingOptions::set_list(const std::string& section, const std::string& key, const std::vector<std::string>& values) {
  std::vector<ConfigNode> items;
  items.reserve(values.size());
  for (const std::string& value : values) items.push_back(ConfigNode::scalar(value, {file_, 0}));
  set_node(section, key, ConfigNode::list(std::move(items), {file_, 0}));
}

Options IncomingOptions::read() const {
  ConfigNode tree = tree_;
  tree.set_path("");
  return options_from(tree);
}

Tensor PieceOrder::arranged(const Tensor& table) const {
  const Tensor index = at::tensor(rows, at::kLong);
  const Tensor is_made_up = table.dim() == 1 ? index < 0 : (index < 0).unsqueeze(1);
  return table.index_select(0, index.clamp_min(0)).masked_fill_(is_made_up, 0);
}

PieceOrder order_of(const std::map<int64_t, std::string>& pieces, int64_t unk, std::optional<int64_t> start, int64_t eos) {
  PieceOrder order;
  const auto add = [&order](const std::string& piece, int64_t row) {
    order.pieces.push_back(piece);
    order.rows.push_back(row);
  };
  const auto is_there = [&](const std::string& piece) {
    return std::ranges::any_of(pieces, [&](const auto& entry) { return entry.second == piece; });
  };
  add(pieces.at(unk), unk);
  if (start && *start != eos)
    add(pieces.at(*start), *start);
  else
    add(is_there("<s>") ? "<start>" : "<s>", PieceOrder::kNoRow);
  add(pieces.at(eos), eos);
  for (const auto& [id, piece] : pieces)
    if (id != unk && id != eos && id != order.rows[kBos]) add(piece, id);
  return order;
}

std::vector<std::string> language_tags(const std::vector<std::string>& pieces) {
  std::vector<std::string> tags;
  std::ranges::copy_if(pieces, std::back_inserter(tags), [](const std::string& piece) {
    return is_language_code(piece) || (piece.size() > 4 && length_of_bracketed_tag(piece) == piece.size());
  });
  return tags;
}

void require_tag(const std::string& tag, const std::string& flag, const PieceOrder& order) {
  if (tag.empty() || std::ranges::find(order.pieces.begin() + kEos + 1, order.pieces.end(), tag) != order.pieces.end()) return;
  const std::vector<std::string> tags = language_tags(order.pieces);
  const std::string expected =
      tags.empty() ? "it has none of languages: leave the flag out" : "expected one of its languages': " + join_first(tags);
  throw UsageError(std::string(flag).append(" is \"").append(tag).append("\", which is no token of the model; ").append(expected) +
                   did_you_mean(tag, tags));
}

namespace {

/// Returns the SentencePiece model with its list, unless it has the same ids without one.
std::string with_list(const IncomingVocabulary& side) {
  const VocabularyPtr plain = sentencepiece_from_bytes(side.spm, side.place);
  bool is_same = side.start.empty() && plain->size() == std::ssize(side.pieces);
  for (TokenId id = 0; is_same && id < plain->size(); ++id) is_same = plain->piece(id) == side.pieces[static_cast<size_t>(id)];
  return is_same ? side.spm : with_piece_list(side.spm, {side.pieces, side.start});
}

}  // namespace

Vocabularies vocabularies_of(const IncomingVocabulary& src, const IncomingVocabulary& tgt) {
  const std::string src_model = with_list(src), tgt_model = with_list(tgt);
  if (src.pieces != tgt.pieces)
    return {sentencepiece_from_bytes(src_model, src.place, Side::kSrc), sentencepiece_from_bytes(tgt_model, tgt.place, Side::kTgt)};
  if (src_model == tgt_model || model_for_targets(src_model) == tgt_model)
    return for_both_sides(sentencepiece_from_bytes(src_model, src.place));
  return for_both_sides(sentencepiece_from_bytes(with_model_for_targets(src_model, tgt_model), src.place));
}

Tensor IncomingWeights::take(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError(place_ + ": the tensor " + name + " is missing; expected one " + c10::str(shape));
  const Tensor& tensor = found->second;
  if (tensor.sizes() != at::IntArrayRef(shape))
    throw DataError(place_ + ": the tensor " + name + " is " + c10::str(tensor.sizes()) + "; by the configuration expected " +
                    c10::str(at::IntArrayRef(shape)));
  if (!tensor.is_floating_point()) throw DataError(place_ + ": the tensor " + name + " holds no floats; expected fp32, fp16 or bf16");
  taken_.insert(name);
  return tensor.to(at::kFloat);
}

void IncomingWeights::require_all_taken() const {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : tensors_)
    if (!taken_.contains(name)) others.push_back(name);
  if (!others.empty())
    throw DataError(place_ + ": has tensors that no part of such a model takes: " + join_first(others) +
                    "; the model is of another kind than its configuration says");
}

}  // namespace lacuna

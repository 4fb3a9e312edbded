#include "model/shortlisted_projection.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/device.h"

namespace lacuna {

ShortlistedProjection::ShortlistedProjection(const std::vector<std::vector<int32_t>>& candidates) : rows_(candidates.size()) {
  candidates_.reserve(candidates.size());
  for (const auto& one : candidates) candidates_.push_back(std::make_shared<const std::vector<int32_t>>(one));
}

void ShortlistedProjection::join(const std::vector<int32_t>& kept, ShortlistedProjection&& other) {
  const auto join = [&](auto& here, auto& there) {
    std::remove_reference_t<decltype(here)> joined;
    joined.reserve(kept.size() + there.size());
    for (const int32_t sentence : kept) joined.push_back(std::move(here[static_cast<size_t>(sentence)]));
    std::move(there.begin(), there.end(), std::back_inserter(joined));
    here = std::move(joined);
  };
  join(candidates_, other.candidates_);
  join(rows_, other.rows_);
}

const ShortlistedProjection::Rows& ShortlistedProjection::rows_of(int32_t sentence, const OutputProjection& output) {
  auto& rows = rows_[static_cast<size_t>(sentence)];
  if (!rows) {
    EmbeddingTable& table = *output.table;
    const Tensor ids = tensor_of(*candidates_[static_cast<size_t>(sentence)], table.weight().device());
    rows.emplace(Rows{PackedWeight(table.weight().detach().index_select(0, ids), table.packed().precision()),
                      output.bias.defined() ? output.bias.detach().index_select(0, ids) : Tensor()});
  }
  return *rows;
}

Logits ShortlistedProjection::logits(const Tensor& hidden, const std::vector<int32_t>& sentences, const OutputProjection& output) {
  constexpr int64_t kSentencesPerTask = 4;
  const auto rows = static_cast<int64_t>(sentences.size());
  std::vector<TokenSet> tokens;
  tokens.reserve(sentences.size());
  std::vector<int64_t> borders;  // between the rows of one sentence and of the next
  size_t widest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t sentence = sentences[static_cast<size_t>(row)];
    if (row == 0 || sentence != sentences[static_cast<size_t>(row - 1)]) borders.push_back(row);
    tokens.push_back(candidates_[static_cast<size_t>(sentence)]);
    widest = std::max(widest, tokens.back()->size());
  }
  borders.push_back(rows);
  const Tensor logits = at::empty({rows, static_cast<int64_t>(widest)}, at::kFloat);
  at::parallel_for(0, static_cast<int64_t>(borders.size()) - 1, kSentencesPerTask, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_gradients;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = borders[static_cast<size_t>(i)], count = borders[static_cast<size_t>(i + 1)] - first;
      const Rows& projection = rows_of(sentences[static_cast<size_t>(first)], output);
      const Tensor product = projection.weight.multiply(hidden.narrow(0, first, count), projection.bias);
      logits.narrow(0, first, count).narrow(1, 0, product.size(1)).copy_(product);
    }
  });
  return Logits(logits, std::move(tokens), output.table->weight().size(0));
}

}  // namespace lacuna

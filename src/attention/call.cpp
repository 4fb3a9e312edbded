#include "attention/call.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <sstream>

#include "attention/registry.h"
#include "base/random.h"

namespace lacuna {
namespace {

void require(bool holds, const AttentionCall& call, const char* what) {
  if (holds) return;
  std::ostringstream message;
  message << "attention: " << what << "; q " << call.q.sizes() << ", k " << call.k.sizes() << ", v " << call.v.sizes();
  throw ShapeError(message.str());
}

/// Returns true for the shapes of a learned number, [H] and [Tq, H].
bool is_of_rows(const Tensor& number, const AttentionCall& call) {
  const int64_t queries = call.q.size(0), heads = call.q.size(1);
  return number.sizes() == at::IntArrayRef({heads}) || number.sizes() == at::IntArrayRef({queries, heads});
}

}  // namespace

const char* name_of(AttentionSite site) {
  switch (site) {
    case AttentionSite::kEncoderSelf:
      return "encoder_self";
    case AttentionSite::kDecoderSelf:
      return "decoder_self";
    case AttentionSite::kCross:
      break;
  }
  return "cross";
}

KeyRange KeyRange::of(const RaggedShape& shape) {
  KeyRange keys;
  for (int64_t b = 0; b < shape.num_sentences(); ++b) {
    keys.begin.push_back(shape.begin(b));
    keys.count.push_back(shape.length(b));
  }
  return keys;
}

AttentionGradients allocate_gradients(const AttentionCall& call, bool uncleared) {
  AttentionGradients gradients;
  const auto sums = [&](const Tensor& like) {
    return uncleared ? at::empty(like.sizes(), like.options()) : at::zeros(like.sizes(), like.options());
  };
  if (call.packed.defined()) {
    gradients.packed = sums(call.packed);
    const std::vector<Tensor> parts = gradients.packed.unbind(1);
    if (parts.size() == 3) gradients.q = parts.front();
    gradients.k = parts[parts.size() - 2];
    gradients.v = parts.back();
  }
  if (!gradients.q.defined()) gradients.q = at::empty(call.q.sizes(), call.q.options());
  if (!gradients.k.defined()) gradients.k = sums(call.k);
  if (!gradients.v.defined()) gradients.v = sums(call.v);
  return gradients;
}

void check_shapes(const AttentionCall& call) {
  require(call.q.dim() == 3 && call.k.dim() == 3 && call.v.dim() == 3, call, "q, k and v must be [T, H, d]");
  require(call.q.size(1) == call.k.size(1) && call.k.size(1) == call.v.size(1), call, "q, k and v must have the same heads");
  require(call.q.size(2) == call.k.size(2) && call.k.size(0) == call.v.size(0), call, "k must be as wide as q and as long as v");
  if (call.packed.defined()) {
    const int64_t parts = call.packed.dim() == 4 && call.packed.is_contiguous() ? call.packed.size(1) : 0;
    require(parts == 2 || parts == 3, call, "packed must be [Tk, 2 or 3, H, d] and contiguous");
    const auto is_part = [&](const Tensor& rows, int64_t i) {
      const Tensor part = call.packed.select(1, i);
      return rows.const_data_ptr() == part.const_data_ptr() && rows.sizes() == part.sizes() && rows.strides() == part.strides();
    };
    require(is_part(call.k, parts - 2) && is_part(call.v, parts - 1) && (parts == 2 || is_part(call.q, 0)), call,
            "k and v, or q, k and v, must be the parts of packed, in this order");
  }
  require(call.queries && call.keys && call.type, call, "queries, keys and type must be given");
  require(call.queries->num_tokens() == call.q.size(0), call, "the sentences' borders must end where q ends");
  const auto sentences = static_cast<size_t>(call.queries->num_sentences());
  require(call.keys->begin.size() == sentences && call.keys->count.size() == sentences, call, "one key range per sentence of queries");
  require(call.first_position.empty() || call.first_position.size() == sentences, call, "one first position per sentence of queries");
  const int64_t rows = call.keys->slots.empty() ? call.k.size(0) : static_cast<int64_t>(call.keys->slots.size());
  for (size_t b = 0; b < sentences; ++b)
    require(call.keys->begin[b] >= 0 && call.keys->count[b] >= 0 && int64_t{call.keys->begin[b]} + call.keys->count[b] <= rows, call,
            "a key range ends outside of k");
  const auto wanted = static_cast<size_t>(call.type->num_numbers());
  require(call.numbers.size() == wanted, call, "as many learned numbers must be given as the type takes for each row");
  for (const Tensor& number : call.numbers) require(is_of_rows(number, call), call, "a learned number must be [H] or [Tq, H]");
}

bool shares_keys(const KeyRange& keys) {
  if (!keys.slots.empty()) return true;
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (size_t b = 0; b < keys.begin.size(); ++b)
    if (keys.count[b] > 0) ranges.emplace_back(keys.begin[b], keys.begin[b] + keys.count[b]);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

bool covers_in_order(const KeyRange& keys, int64_t rows) {
  if (!keys.slots.empty()) return false;
  int64_t end = 0;
  for (size_t b = 0; b < keys.begin.size(); ++b) {
    if (keys.begin[b] != end) return false;
    end += keys.count[b];
  }
  return end == rows;
}

int32_t query_position(const AttentionCall& call, int64_t b, int32_t i) {
  return call.first_position.empty() ? i : call.first_position[static_cast<size_t>(b)] + i;
}

void visible_keys(const AttentionCall& call, int64_t b, int64_t head, int32_t position, std::vector<KeySegment>& segments) {
  segments.clear();
  const int32_t count = call.keys->count[static_cast<size_t>(b)];
  call.type->pattern(head).append_visible(position, call.causal ? std::min(count, position + 1) : count, segments);
}

void keep_near(int32_t position, int32_t reach, std::vector<KeySegment>& segments) {
  const int32_t first = position - reach, last = position + reach;
  size_t kept = 0;
  for (const KeySegment& segment : segments) {
    const int32_t skipped = segment.begin < first ? (first - segment.begin + segment.stride - 1) / segment.stride : 0;
    const int32_t end = segment.begin > last ? 0 : std::min(segment.count, (last - segment.begin) / segment.stride + 1);
    if (skipped >= end) continue;
    const int32_t count = end - skipped;
    segments[kept++] = {segment.begin + skipped * segment.stride, count, count > 1 ? segment.stride : 1};
  }
  segments.resize(kept);
}

uint64_t dropout_call_key(const AttentionCall& call, const ForwardContext& context) {
  const uint64_t place = static_cast<uint64_t>(call.layer) * 4 + static_cast<uint64_t>(call.site);
  return random_key(context.seed, RandomUse::kAttentionDropout, static_cast<uint64_t>(context.step), place);
}

AttentionDropout dropout_of(const AttentionCall& call, const ForwardContext& context, int64_t b, int64_t head) {
  if (!context.training || call.dropout <= 0) return {};
  return AttentionDropout(call.dropout, dropout_call_key(call, context), head, call.queries->id(b));
}

bool is_probed(const AttentionCall& call, const ForwardContext& context) {
  return context.probe != nullptr && context.probe->wants(call.layer, call.site);
}

}  // namespace lacuna

#include "attention/cpu/parts.h"

#include <algorithm>
#include <utility>

#include "attention/cpu/core_tile.h"
#include "attention/cpu/machine_plain.h"
#include "attention/registry.h"

namespace lacuna {
namespace {

/// A query and its pattern's group.
using GroupedQuery = std::pair<int64_t, int32_t>;

std::vector<GroupedQuery> grouped_queries(const AttentionCall& call, int64_t b, int64_t head) {
  const AttentionPattern& pattern = call.type->pattern(head);
  std::vector<GroupedQuery> queries;
  queries.reserve(static_cast<size_t>(call.queries->length(b)));
  for (int32_t i = 0; i < call.queries->length(b); ++i) queries.emplace_back(pattern.group(query_position(call, b, i)), i);
  std::sort(queries.begin(), queries.end());
  return queries;
}

/// True if `query` lies as far from the part's last query as this from the one before.
bool continues(const AttentionPart& part, int32_t query) {
  return part.num_queries == 1 || query == part.first_query + part.num_queries * part.query_step;
}

void append_query(AttentionPart& part, int32_t query) {
  if (part.num_queries == 1) part.query_step = query - part.first_query;
  ++part.num_queries;
}

/// The keys that the pattern shows the part's last query are those of all: it shows others fewer in a causal call only, and then the first
/// few.
void find_keys(const AttentionCall& call, int64_t b, int64_t head, std::span<const int32_t> reach, AttentionPart& part) {
  const auto position = [&](int32_t i) { return query_position(call, b, part.first_query + i * part.query_step); };
  std::vector<KeySegment> visible;
  visible_keys(call, b, head, position(part.num_queries - 1), visible);
  append_positions(visible, part.keys);
  std::sort(part.keys.begin(), part.keys.end());

  part.first_segment.push_back(0);
  for (int32_t i = 0; i < part.num_queries; ++i) {
    auto begin = part.keys.begin(), end = call.causal ? std::upper_bound(begin, part.keys.end(), position(i)) : part.keys.end();
    if (!reach.empty()) {
      const int32_t query = part.first_query + i * part.query_step;
      const int32_t farthest = reach[static_cast<size_t>(query)];
      begin = std::lower_bound(begin, end, position(i) - farthest);
      end = std::upper_bound(begin, end, position(i) + farthest);
    }
    append_segment(begin - part.keys.begin(), end - part.keys.begin(), 1, part.segments);
    part.first_segment.push_back(static_cast<int32_t>(part.segments.size()));
  }
}

/// The parts without their keys.
std::vector<AttentionPart> parts_of_queries(const AttentionCall& call, int64_t b, int64_t head) {
  const std::vector<GroupedQuery> queries = grouped_queries(call, b, head);
  std::vector<AttentionPart> parts;
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto [group, query] = queries[i];
    if (i > 0 && group == queries[i - 1].first && continues(parts.back(), query)) {
      append_query(parts.back(), query);
    } else {
      parts.push_back({.first_query = query, .query_step = 1, .num_queries = 1, .keys = {}, .segments = {}, .first_segment = {}});
    }
  }
  constexpr size_t kWorthGathering = 4;  // queries a part
  if (kWorthGathering * parts.size() > queries.size()) return {};
  return parts;
}

/// True if some tile of the sentence's queries is worth its products. Tiles are cut as for products of floats; those of bf16 have others.
bool has_dense_tile(const AttentionCall& call, int64_t b, int64_t head) {
  using Products = core::DirectProducts<core::PlainMachine<double>>;
  std::vector<KeySegment> segments, of_query;
  std::vector<int32_t> first_segment = {0};
  for (int32_t i = 0; i < call.queries->length(b); ++i) {
    visible_keys(call, b, head, query_position(call, b, i), of_query);
    segments.insert(segments.end(), of_query.begin(), of_query.end());
    first_segment.push_back(static_cast<int32_t>(segments.size()));
  }
  core::Task<double> task = {};
  task.queries = call.queries->length(b);
  task.keys = call.keys->count[static_cast<size_t>(b)];
  task.segments = segments.data();
  task.first_segment = first_segment.data();
  for (int i = 0; i < task.queries;) {
    const core::Tile<Products::kTile> tile = core::next_tile<Products>(task, i);
    if (core::is_dense(task, tile)) return true;
    i += tile.rows;
  }
  return false;
}

}  // namespace

std::vector<AttentionPart> attention_parts(const AttentionCall& call, int64_t b, int64_t head, std::span<const int32_t> reach) {
  std::vector<AttentionPart> parts = parts_of_queries(call, b, head);
  for (AttentionPart& part : parts) find_keys(call, b, head, reach, part);
  return parts;
}

bool goes_in_tiles(const AttentionCall& call, int64_t b, int64_t head) {
  const int32_t queries = call.queries->length(b);
  if (!call.keys->slots.empty() || queries == 0) return false;
  if (call.rows_alike) return true;
  if (queries == 1) return false;
  std::vector<KeySegment> of_last;
  visible_keys(call, b, head, query_position(call, b, queries - 1), of_last);
  if (is_one_run(of_last)) return true;
  return parts_of_queries(call, b, head).empty() && has_dense_tile(call, b, head);
}

}  // namespace lacuna

#include "attention/cpu/parts.h"

#include <algorithm>
#include <utility>

#include "attention/registry.h"

namespace lacuna {
namespace {

/// The group of a query in its pattern, and the query.
using GroupedQuery = std::pair<int64_t, int32_t>;

std::vector<GroupedQuery> grouped_queries(const AttentionCall& call, int64_t b, int64_t head) {
  const AttentionPattern& pattern = call.type->pattern(head);
  std::vector<GroupedQuery> queries;
  queries.reserve(static_cast<size_t>(call.queries->length(b)));
  for (int32_t i = 0; i < call.queries->length(b); ++i) queries.emplace_back(pattern.group(query_position(call, b, i)), i);
  std::sort(queries.begin(), queries.end());
  return queries;
}

/// Returns true if `query` is as far from the part's last query as that is from the one before.
bool continues(const AttentionPart& part, int32_t query) {
  return part.num_queries == 1 || query == part.first_query + part.num_queries * part.query_step;
}

void append_query(AttentionPart& part, int32_t query) {
  if (part.num_queries == 1) part.query_step = query - part.first_query;
  ++part.num_queries;
}

/// Sets the part's keys and segments. The keys are its last query's: in a causal call others see only the first few.
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

/// Returns the parts without their keys.
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

}  // namespace

std::vector<AttentionPart> attention_parts(const AttentionCall& call, int64_t b, int64_t head, std::span<const int32_t> reach) {
  std::vector<AttentionPart> parts = parts_of_queries(call, b, head);
  for (AttentionPart& part : parts) find_keys(call, b, head, reach, part);
  return parts;
}

}  // namespace lacuna

#include "text/piece_list.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "text/spm_fields.h"

namespace lacuna {
namespace {

constexpr size_t kLongestListed = 1000, kSpecialPieces = 3;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

}  // namespace

std::string with_piece_list(const std::string& model, const PieceList& list) {
  std::string bytes = without_field(without_field(model, kListedPiece), kStartTag);
  for (const std::string& piece : list.pieces) add_field(bytes, kListedPiece, piece);
  if (!list.start.empty()) add_field(bytes, kStartTag, list.start);
  return bytes;
}

std::string with_model_for_targets(const std::string& model, const std::string& of_targets) {
  return with_field(model, kModelForTargets, of_targets);
}

bool has_model_for_targets(const std::string& model) {
  return field_of(model, kModelForTargets).has_value();
}

std::string without_piece_list(const std::string& model) {
  return without_field(without_field(without_field(model, kListedPiece), kStartTag), kModelForTargets);
}

std::optional<PieceList> piece_list_of(const std::string& model, const std::string& name) {
  PieceList list;
  std::unordered_set<std::string_view> known;
  SpmFields fields(model);
  while (const auto field = fields.next()) {
    if (field->number == kStartTag) list.start = field->value;
    if (field->number != kListedPiece) continue;
    if (field->value.empty() || field->value.size() > kLongestListed || first_invalid_utf8(field->value))
      throw DataError(name + ": piece " + std::to_string(list.pieces.size()) + " of its list is no text of 1 to " +
                      std::to_string(kLongestListed) + " bytes; expected a piece");
    if (!known.insert(field->value).second)
      throw DataError(name + ": its list of pieces has \"" + std::string(field->value) + "\" twice; expected each once");
    list.pieces.emplace_back(field->value);
  }
  if (!list.start.empty() && !known.contains(list.start))
    throw DataError(name + ": lines are to begin with \"" + list.start + "\", which is not in its list of pieces");
  if (list.pieces.empty()) return {};
  if (list.pieces.size() <= kSpecialPieces) throw DataError(name + ": its list of pieces has none beside unk, bos and eos");
  return list;
}

size_t length_of_bracketed_tag(std::string_view line) {
  if (!line.starts_with(">>")) return 0;
  const size_t end = line.find("<<", 2);
  if (end == std::string_view::npos || line.substr(0, end).find(' ') != std::string_view::npos) return 0;
  return end + 2;
}

bool is_language_code(std::string_view piece) {
  if (piece.size() > 4 && piece.starts_with("__") && piece.ends_with("__"))
    return std::ranges::all_of(piece.substr(2, piece.size() - 4), [](char c) { return is_lower(c) || c == '_'; });
  return piece.size() == 8 && std::ranges::all_of(piece.substr(0, 3), is_lower) && piece[3] == '_' && piece[4] >= 'A' && piece[4] <= 'Z' &&
         std::ranges::all_of(piece.substr(5), is_lower);
}

}  // namespace lacuna

#include "text/spm_file.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "text/spm_fields.h"

namespace lacuna {
namespace {

constexpr size_t kUnitsOfBlock = 256;
constexpr int kMostMatches = 32;  // that the library has room for
constexpr size_t kLongestReplacement = 256, kLongestPiece = 1000;
constexpr size_t kShortLine = 4096, kShortRun = 8, kMostSymbols = 64;
constexpr uint32_t kCodePoints = 0x110000, kWordMark = 0x2581;

[[noreturn]] void refuse_model(const std::string& name, const std::string& why) {
  throw DataError(name + ": is not a SentencePiece model; expected a .model file (" + why + ")");
}

// A unit of the trie is a node: the byte that leads to it, and where its children are. Where bit 31 is set it is a value.
bool is_value(uint32_t unit) {
  return unit >> 31 != 0;
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0xFF;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (1U << 9)) >> 6);
}

/// Calls `use` with each field of a message, which has to be whole.
void for_each_field(std::string_view message, const std::string& name, const std::function<void(const SpmFields::Field&)>& use) {
  SpmFields fields(message);
  while (const auto field = fields.next()) use(*field);
  if (!fields.trouble().empty()) refuse_model(name, fields.trouble());
}

/// Takes the first character of a text that is UTF-8.
uint32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : static_cast<size_t>(std::countl_one(lead));
  uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(length);
  return code;
}

}  // namespace

CharacterRules::CharacterRules(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) return;
  uint32_t length = 0;
  if (bytes.size() > sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
  constexpr size_t kBytesOfBlock = kUnitsOfBlock * sizeof(uint32_t);
  if (length == 0 || length % kBytesOfBlock != 0 || length >= bytes.size() - sizeof length || bytes.back() != '\0')
    refuse_model(name, "its character map is cut short");
  units_.resize(length / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof length, length);
  replacements_ = bytes.substr(sizeof length + length);
  check_units(name);
  check_depth(name);
}

/// Returns where the children of a node are: that of a byte at this place XOR the byte, in one block of units.
uint32_t CharacterRules::children_of(uint32_t unit) const {
  return unit ^ offset_of(units_[unit]);
}

std::string_view CharacterRules::replacement_of(uint32_t unit) const {
  return replacements_.c_str() + (units_[children_of(unit)] & ~(1U << 31));
}

void CharacterRules::check_units(const std::string& name) const {
  for (uint32_t i = 0; i < units_.size(); ++i) {
    if (i > 0 && is_value(units_[i])) continue;
    const uint32_t children = children_of(i);
    if ((children | (kUnitsOfBlock - 1)) >= units_.size()) refuse_model(name, "its character map leads out of itself");
    if (i == 0 || !has_value(units_[i])) continue;
    const uint32_t place = units_[children] & ~(1U << 31);
    if (place >= replacements_.size()) refuse_model(name, "its character map leads out of itself");
    const std::string_view replacement = replacement_of(i);
    if (replacement.size() > kLongestReplacement || first_invalid_utf8(replacement))
      refuse_model(name, "its character map holds what is no short text");
  }
}

/// Checks that no path through the trie is a circle, or has more values than the library has room for.
void CharacterRules::check_depth(const std::string& name) const {
  constexpr uint32_t kNone = UINT32_MAX;
  enum class State { kNew, kOpen, kDone };
  struct Siblings {  // by their parent's children_of
    uint32_t first = kNone;
    State state = State::kNew;
    int most_values = 0;  // on a path from here
  };
  std::vector<Siblings> all(units_.size());
  std::vector<uint32_t> next_sibling(units_.size(), kNone), path = {children_of(0)};
  for (uint32_t i = 1; i < units_.size(); ++i)
    if (!is_value(units_[i])) next_sibling[i] = std::exchange(all[i ^ label_of(units_[i])].first, i);
  while (!path.empty()) {
    Siblings& here = all[path.back()];
    here.state = State::kOpen;
    std::optional<uint32_t> deeper;
    for (uint32_t child = here.first; child != kNone && !deeper; child = next_sibling[child]) {
      const Siblings& below = all[children_of(child)];
      if (below.state == State::kOpen) refuse_model(name, "its character map has no end");
      if (below.state == State::kNew) deeper = children_of(child);
      here.most_values = std::max(here.most_values, below.most_values + (has_value(units_[child]) ? 1 : 0));
    }
    if (here.most_values > kMostMatches) refuse_model(name, "its character map has too many rules for one text");
    if (deeper) {
      path.push_back(*deeper);
    } else {
      here.state = State::kDone;
      path.pop_back();
    }
  }
}

CharacterRules::Match CharacterRules::longest(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t place = children_of(0);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const uint32_t unit = place ^ byte;
    if (is_value(units_[unit]) || label_of(units_[unit]) != byte) break;
    place = children_of(unit);
    if (has_value(units_[unit])) match = {i + 1, replacement_of(unit)};
  }
  return match;
}

size_t ShortenedLine::place_in_line(size_t place) const {
  const auto after = std::ranges::upper_bound(cuts, place, {}, [](const auto& cut) { return cut.first; });
  return place + (after == cuts.begin() ? 0 : std::prev(after)->second);
}

SpmFile::SpmFile(std::string_view bytes, const std::string& name) : alphabet_(kCodePoints) {
  constexpr uint64_t kPiece = 1, kNormalizer = 3, kDenormalizer = 5;
  for_each_field(bytes, name, [&](const SpmFields::Field& field) {
    const bool is_used = field.number == kNormalizer;
    if (field.number == kPiece) read_piece(field.value, name);
    if (is_used || field.number == kDenormalizer || field.number == kRuleForTargets) read_rules(field.value, name, is_used);
  });
  if (!has_pieces_) refuse_model(name, "it has no pieces");
  alphabet_[' '] = alphabet_[kWordMark] = true;
}

void SpmFile::read_piece(std::string_view message, const std::string& name) {
  constexpr uint64_t kText = 1, kScore = 2, kType = 3;
  constexpr uint64_t kNormal = 1, kUserDefined = 4, kUnused = 5, kByte = 6;
  std::string_view text;
  float score = 0;
  uint64_t type = kNormal;
  for_each_field(message, name, [&](const SpmFields::Field& field) {
    if (field.number == kText) text = field.value;
    if (field.number == kType) type = field.integer;
    if (field.number == kScore && field.value.size() == sizeof score) std::memcpy(&score, field.value.data(), sizeof score);
  });
  if (text.empty() || text.size() > kLongestPiece || first_invalid_utf8(text) || text.find('\0') != std::string_view::npos)
    refuse_model(name, "it has a piece that is no text of 1 to " + std::to_string(kLongestPiece) + " bytes");
  if (!std::isfinite(score)) refuse_model(name, "it has a piece whose score is no number");
  has_pieces_ = true;
  spells_bytes_ = spells_bytes_ || type == kByte;
  if (type == kUserDefined) symbols_.emplace_back(text);
  if (type != kNormal && type != kUserDefined && type != kUnused) return;
  while (!text.empty()) alphabet_[take_character(text)] = true;
}

void SpmFile::read_rules(std::string_view message, const std::string& name, bool is_used) {
  constexpr uint64_t kCharacterMap = 2;
  for_each_field(message, name, [&](const SpmFields::Field& field) {
    if (field.number != kCharacterMap) return;
    CharacterRules rules(field.value, name);
    if (is_used) rules_ = std::move(rules);
  });
}

bool SpmFile::has_known_character(std::string_view text) const {
  while (!text.empty())
    if (alphabet_[take_character(text)]) return true;
  return false;
}

SpmFile::Unit SpmFile::unit_at(std::string_view line, size_t begin) const {
  const std::string_view rest = line.substr(begin);
  for (const std::string& symbol : symbols_)
    if (rest.starts_with(symbol)) return {begin, symbol.size(), true, false};
  const CharacterRules::Match match = rules_.longest(rest);
  if (match.length > 0) return {begin, match.length, has_known_character(match.replacement), match.replacement.empty()};
  std::string_view after = rest;
  const bool is_known = alphabet_[take_character(after)];
  return {begin, rest.size() - after.size(), is_known, false};
}

std::vector<SpmFile::Unit> SpmFile::units_of(std::string_view line) const {
  std::vector<Unit> units;
  for (size_t at = 0; at < line.size(); at += units.back().length) units.push_back(unit_at(line, at));
  return units;
}

ShortenedLine SpmFile::shortened(std::string_view line) const {
  ShortenedLine whole = {std::string(line), {}};
  if (line.size() <= kShortLine || spells_bytes_ || symbols_.size() > kMostSymbols || first_invalid_utf8(line)) return whole;
  const std::vector<Unit> units = units_of(line);
  std::vector<Unit> kept;
  ShortenedLine shorter;
  for (size_t i = 0, end = 0; i < units.size(); i = end) {
    for (end = i + 1; !units[i].is_known && end < units.size() && !units[end].is_known;) ++end;
    bool has_sound = false;
    for (size_t u = i; u < end; ++u) {  // of a long run, the first and the last unit, and the first that is not silent
      const bool is_first_sound = !units[u].is_silent && !std::exchange(has_sound, true);
      if (end - i > kShortRun && u > i && u + 1 < end && !is_first_sound) continue;
      const size_t left_out = units[u].begin - shorter.text.size();
      if (left_out > (shorter.cuts.empty() ? 0 : shorter.cuts.back().second)) shorter.cuts.emplace_back(shorter.text.size(), left_out);
      shorter.text += line.substr(units[u].begin, units[u].length);
      kept.push_back(units[u]);
    }
  }
  const std::vector<Unit> again = units_of(shorter.text);  // a rule may join what became neighbours
  const bool is_same = std::ranges::equal(kept, again, [](const Unit& a, const Unit& b) { return a.length == b.length; });
  return is_same ? shorter : whole;
}

void load_spm(sentencepiece::SentencePieceProcessor& processor, const std::string& model, const std::string& name) {
  try {
    if (const auto status = processor.LoadFromSerializedProto(model); !status.ok()) refuse_model(name, status.ToString());
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    refuse_model(name, std::string("SentencePiece says: ") + error.what());
  }
  if (processor.GetPieceSize() == 0) refuse_model(name, "it has no pieces");
}

}  // namespace lacuna

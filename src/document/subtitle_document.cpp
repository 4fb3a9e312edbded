#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "document/characters.h"
#include "document/document.h"
#include "document/html_tokens.h"
#include "document/tag_projection.h"

namespace lacuna::document {
namespace {

/// What one speaker says in a cue: all of its text, or from a line that begins with a dash on.
struct Utterance {
  Span place;  ///< in the file, without a dash and tags at its beginning, and without tags at its end
  size_t num_lines = 1;
  double begin = 0, end = 0;  ///< seconds
  bool begins_with_dash = false;
};

/// Reads "01:02:03,450" or "02:03.450" at the beginning of a text, in seconds; -1 if there is none.
double seconds_at(std::string_view text) {
  double seconds = 0;
  int numbers = 0;
  for (const char *at = text.data(), *const end = at + text.size();; ++at) {
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return -1;
    const bool is_fraction = at > text.data() && *(at - 1) != ':';
    double share = static_cast<double>(number);
    for (const char* digit = at; is_fraction && digit < rest; ++digit) share /= 10;
    seconds = is_fraction ? seconds + share : seconds * 60 + share;
    at = rest;
    if (++numbers > 1 && (is_fraction || at == end || (*at != ':' && *at != ',' && *at != '.'))) return seconds;
    if (at == end || (*at != ':' && *at != ',' && *at != '.')) return -1;
  }
}

bool ends_sentence(std::string_view text) {
  constexpr std::array<UChar32, 12> kMarks = {'.', '!', '?', ':', '"', ')', ']', 0x2026, 0x201D, 0x3002, 0xFF01, 0xFF1F};
  return std::ranges::find(kMarks, character_before(text, text.size())) != kMarks.end();
}

/// Utterances that sentences go through: what is said without a pause up to the end of a sentence.
class Passage {
 public:
  Passage(std::string_view file, std::vector<Utterance> utterances, const Splitting& how)
      : utterances_(std::move(utterances)), paragraph_(read(file), how) {
    const std::vector<size_t>& borders = paragraph_.stand_ins().part_borders();
    for (size_t i = 0; i < utterances_.size(); ++i) {
      texts_.push_back({borders[part_ranges_[i].begin], borders[part_ranges_[i].end]});
      for (size_t j = 0; j < elements_[i].size(); ++j) {
        const Span parts = element_parts_[i][j];
        elements_[i][j].place = {borders[parts.begin] - texts_[i].begin, borders[parts.end] - texts_[i].begin};
      }
    }
  }

  const std::vector<Utterance>& utterances() const { return utterances_; }
  void append_to(std::vector<std::string>& sentences) { paragraph_.append_to(sentences); }
  bool needs_links() const { return utterances_.size() > 1 || !elements_.front().empty() || !paragraph_.stand_ins().places().empty(); }

  /// Returns the translation of each utterance.
  std::vector<std::string> translated(std::span<const LinkedText> translations, std::vector<size_t>& used) const {
    LinkedTextJoiner joiner;
    paragraph_.add_marked_translation(translations, joiner, used);
    const LinkedText whole = std::move(joiner).joined();
    const StandIns& stand_ins = paragraph_.stand_ins();
    const std::vector<Span> src_words = words_of(stand_ins.text()), tgt_words = words_of(whole.text);
    const std::vector<size_t> borders = target_borders(src_words, tgt_words.size(), whole.links);
    std::vector<std::string> texts;
    for (size_t i = 0; i < utterances_.size(); ++i) {
      const size_t first_src = first_word_behind(src_words, texts_[i].begin);
      LinkedText part;
      if (borders[i] < borders[i + 1]) part.text = Span{tgt_words[borders[i]].begin, tgt_words[borders[i + 1] - 1].end}.of(whole.text);
      for (const auto& [src, tgt] : whole.links)
        if (static_cast<size_t>(src) >= first_src && static_cast<size_t>(tgt) >= borders[i] && static_cast<size_t>(tgt) < borders[i + 1])
          part.links.emplace_back(src - static_cast<int32_t>(first_src), tgt - static_cast<int32_t>(borders[i]));
      const std::string text = with_elements(texts_[i].of(stand_ins.text()), part, elements_[i],
                                             [&stand_ins](std::string_view words) { return stand_ins.restored(words); });
      texts.push_back(in_lines(text, utterances_[i].num_lines));
    }
    return texts;
  }

 private:
  static size_t first_word_behind(const std::vector<Span>& words, size_t at) {
    return static_cast<size_t>(std::ranges::lower_bound(words, at, {}, &Span::begin) - words.begin());
  }

  /// Returns the parts of the text, one line of all utterances, and makes their elements.
  std::vector<TextPart> read(std::string_view file) {
    std::vector<TextPart> parts;
    for (size_t i = 0; i < utterances_.size(); ++i) {
      if (i > 0) parts.push_back({" "});
      const size_t begin = parts.size();
      elements_.emplace_back();
      element_parts_.emplace_back();
      add_parts(utterances_[i].place.of(file), parts);
      part_ranges_.push_back({begin, parts.size()});
    }
    return parts;
  }

  /// Adds the text of an utterance; its tags become elements, those without a partner points.
  void add_parts(std::string_view text, std::vector<TextPart>& parts) {
    std::vector<Element>& elements = elements_.back();
    std::vector<Span>& places = element_parts_.back();
    const std::vector<HtmlToken> tokens = html_tokens(text);
    std::vector<std::pair<size_t, size_t>> open;  // tokens, elements
    for (size_t i = 0; i < tokens.size(); ++i) {
      const HtmlToken& token = tokens[i];
      const std::string_view piece = token.place.of(text);
      if (token.kind == HtmlToken::Kind::kText) {
        std::string line(piece);
        std::erase(line, '\r');
        std::ranges::replace(line, '\n', ' ');
        for (TextPart& part : parts_of(line)) parts.push_back(std::move(part));
      } else if (token.kind == HtmlToken::Kind::kEnd && !open.empty() && token.partner == open.back().first) {
        elements[open.back().second].close = piece;
        elements[open.back().second].is_point = false;
        places[open.back().second].end = parts.size();
        open.pop_back();
      } else {
        const size_t parent = open.empty() ? Element::kNone : open.back().second;
        const bool may_end = token.kind == HtmlToken::Kind::kStart && token.partner != HtmlToken::kNone && open.size() < kDeepest;
        if (may_end) open.emplace_back(i, elements.size());
        elements.push_back({.open = std::string(piece), .parent = parent, .is_point = !may_end});
        places.push_back({parts.size(), parts.size()});
      }
    }
    for (const auto& [token, element] : open) places[element].end = parts.size();  // what crosses others goes on to the end
  }

  /// Returns the numbers of the words with which the utterances begin in the translation, and of all words at the end: borders that as few
  /// links as may be cross, near where the lengths would put them, with a word at least for each utterance while there are enough.
  std::vector<size_t> target_borders(const std::vector<Span>& src_words, size_t num_tgt, const Links& links) const {
    constexpr double kWeightOfLength = 0.3;
    std::vector<size_t> borders = {0};
    for (size_t i = 1; i < utterances_.size(); ++i) {
      const size_t src = first_word_behind(src_words, texts_[i].begin), left = utterances_.size() - i;
      std::vector<int> crossed(num_tgt + 1);  // what a border before each word adds to those crossed before
      int crossing = 0;
      for (const auto& [from, to] : links) {
        const bool is_before = static_cast<size_t>(from) < src;
        crossing += is_before ? 1 : 0;
        if (static_cast<size_t>(to) < num_tgt) crossed[static_cast<size_t>(to) + 1] += is_before ? -1 : 1;
      }
      const double expected = static_cast<double>(num_tgt * src) / static_cast<double>(std::max<size_t>(1, src_words.size()));
      const size_t most = num_tgt >= left ? std::max(borders.back(), num_tgt - left) : borders.back();
      const size_t least = std::min(borders.back() + 1, most);
      size_t best = least;
      double best_cost = 1e300;
      for (size_t tgt = 0; tgt <= most; ++tgt) {
        crossing += crossed[tgt];
        const double cost = crossing + kWeightOfLength * std::abs(static_cast<double>(tgt) - expected);
        if (tgt < least || cost >= best_cost) continue;
        best = tgt;
        best_cost = cost;
      }
      borders.push_back(best);
    }
    borders.push_back(num_tgt);
    return borders;
  }

  /// Returns the text in so many lines of about equal length, as far as there are spaces outside of tags.
  static std::string in_lines(std::string text, size_t lines) {
    for (size_t line = 1, begin = 0; line < lines; ++line) {
      const size_t goal = begin + (text.size() - begin) / (lines - line + 1);
      size_t best = std::string::npos, tags = 0;
      for (size_t at = begin; at < text.size(); ++at) {
        if (text[at] == '<') ++tags;
        if (text[at] == '>' && tags > 0) --tags;
        const auto distance = [goal](size_t place) { return place > goal ? place - goal : goal - place; };
        if (text[at] == ' ' && tags == 0 && (best == std::string::npos || distance(at) < distance(best))) best = at;
      }
      if (best == std::string::npos) break;
      text[best] = '\n';
      begin = best + 1;
    }
    return text;
  }

  static constexpr size_t kDeepest = 64;

  std::vector<Utterance> utterances_;
  std::vector<std::vector<Element>> elements_;    // of each utterance
  std::vector<std::vector<Span>> element_parts_;  // which parts of the text each of them has
  std::vector<Span> part_ranges_, texts_;         // of each utterance, as parts and in the text
  Paragraph paragraph_;                           // last: reading its text makes the others
};

/// Finds the texts of cues, which follow lines with "-->". All else stays.
class SubtitleDocument : public Document {
 public:
  SubtitleDocument(std::string_view file, const Splitting& how) : file_(file), how_(how) {
    size_t at = file_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    while (at < file_.size()) {
      const Span line = line_at(at);
      at = next_line(line);
      if (const size_t arrow = line.of(file_).find("-->"); arrow != std::string::npos) at = read_cue(line.of(file_), arrow, at);
    }
    end_passage();
  }

  bool needs_links() const override { return std::ranges::any_of(passages_, &Passage::needs_links); }

  Translated translated(std::span<const LinkedText> translations) const override {
    Translated whole;
    size_t end = 0;
    for (const Passage& passage : passages_) {
      const std::vector<std::string> texts = passage.translated(translations, whole.used);
      for (size_t i = 0; i < texts.size(); ++i) {
        const Span place = passage.utterances()[i].place;
        whole.text.text += Span{end, place.begin}.of(file_);
        for (const char c : texts[i]) whole.text.text += c == '\n' ? line_break_ : std::string(1, c);
        end = place.end;
      }
    }
    whole.text.text += Span{end, file_.size()}.of(file_);
    return whole;
  }

 private:
  static constexpr double kPause = 3;            // seconds after which a new passage begins
  static constexpr size_t kMostUtterances = 20;  // of a passage

  Span line_at(size_t begin) const {
    Span line{begin, std::min(file_.find('\n', begin), file_.size())};
    if (line.size() > 0 && file_[line.end - 1] == '\r') --line.end;
    return line;
  }
  size_t next_line(Span line) const { return std::min(file_.find('\n', line.end), file_.size() - 1) + 1; }

  /// Reads the lines of a cue, up to an empty one; returns where it ends.
  size_t read_cue(std::string_view timing, size_t arrow, size_t at) {
    const Span begin = trimmed(timing, {0, arrow}), end = trimmed(timing, {arrow + 3, timing.size()});
    Utterance utterance{{at, at}, 0, seconds_at(begin.of(timing)), seconds_at(end.of(timing))};
    if (utterance.begin < 0 || utterance.end < 0) return at;
    for (; at < file_.size();) {
      const Span line = line_at(at);
      if (trimmed(file_, line).size() == 0) break;
      if (begins_next_cue(line)) break;
      const bool has_dash = begins_with_dash(line);
      if (has_dash && utterance.num_lines > 0) {
        add(utterance);
        utterance.place = {line.begin, line.begin};
        utterance.num_lines = 0;
      }
      if (utterance.num_lines == 0) utterance.begins_with_dash = has_dash;
      ++utterance.num_lines;
      utterance.place.end = line.end;
      line_break_ = file_.compare(line.end, 2, "\r\n") == 0 ? "\r\n" : "\n";
      at = next_line(line);
    }
    if (utterance.num_lines > 0) add(utterance);
    return at;
  }

  /// Returns true for the number or the times of a cue that no empty line stands before.
  bool begins_next_cue(Span line) const {
    if (line.of(file_).find("-->") != std::string_view::npos) return true;
    const bool is_number = trimmed(file_, line).of(file_).find_first_not_of("0123456789") == std::string_view::npos;
    const size_t next = next_line(line);
    return is_number && next < file_.size() && line_at(next).of(file_).find("-->") != std::string_view::npos;
  }

  bool begins_with_dash(Span line) const {
    const std::string_view text = without_outer_tags(line).of(file_);
    const UChar32 first = character_at(text, 0);
    return first == '-' || first == 0x2013 || first == 0x2014;
  }

  /// Returns the span without tags, settings in braces and white space at its ends.
  Span without_outer_tags(Span place) const {
    for (bool is_done = false; !is_done;) {
      place = trimmed(file_, place);
      is_done = true;
      const std::string_view text = place.of(file_);
      const bool has_settings = text.starts_with("{\\");
      if (const size_t close = text.find(has_settings ? '}' : '>');
          (text.starts_with('<') || has_settings) && close != std::string_view::npos) {
        place.begin += close + 1;
        is_done = false;
      } else if (const size_t open = text.rfind('<'); text.ends_with('>') && open != std::string_view::npos) {
        place.end = place.begin + open;
        is_done = false;
      }
    }
    return place;
  }

  void add(Utterance utterance) {
    utterance.place = without_outer_tags(utterance.place);
    if (utterance.begins_with_dash) {
      utterance.place.begin = next_character(file_, utterance.place.begin);
      utterance.place = without_outer_tags(utterance.place);
    }
    if (utterance.place.size() == 0) return;
    if (!utterances_.empty()) {
      const Utterance& last = utterances_.back();
      if (utterance.begins_with_dash || utterances_.size() >= kMostUtterances || ends_sentence(last.place.of(file_)) ||
          utterance.begin - last.end > kPause)
        end_passage();
    }
    utterances_.push_back(utterance);
  }

  void end_passage() {
    if (utterances_.empty()) return;
    passages_.emplace_back(file_, std::exchange(utterances_, {}), how_);
    passages_.back().append_to(sentences_);
  }

  std::string file_;
  const Splitting& how_;
  std::string line_break_ = "\n";
  std::vector<Utterance> utterances_;  // of the passage that is read
  std::vector<Passage> passages_;
};

}  // namespace

std::unique_ptr<Document> subtitle_document(std::string_view file, const Splitting& how) {
  return std::make_unique<SubtitleDocument>(file, how);
}

}  // namespace lacuna::document

#include "run/translate_text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/spelling.h"
#include "run/split_text.h"

namespace lacuna {
namespace {

/// Lines that the input has without waiting for more, and whether more may follow.
struct Window {
  std::vector<InputLine> lines;
  bool more = true;
  std::exception_ptr end;  ///< what ends reading behind `lines`, before the input does: a bad line, a signal
};

/// Reads the next line. One that is passed over has its error and no text. Returns false at the end.
bool read_line(LineReader& reader, const TextTranslation& how, std::string& text, InputLine& line) {
  try {
    if (!reader.next_clean(text)) return false;
    parse_input_line(text, reader.place(), how.format, line);
    if (!line.fields.contains("prefix")) line.input.prefix = how.prefix;
  } catch (const LineError& error) {
    if (how.bad_lines == OnBadLine::kStop) throw LineError(error.kind(), std::string(error.what()) + kHowToSkip);
    line.error = error.what();
    log_warning("{} ({} stands for it)", line.error, how.format.json ? "\"error\"" : "an empty line");
  }
  return true;
}

Window read_window(LineReader& reader, size_t most_lines, const TextTranslation& how) {
  constexpr size_t kBytesAtATime = 8 << 20;
  Window window;
  std::string text;
  size_t bytes = 0;
  const auto has_room = [&] { return window.lines.size() < most_lines && bytes < kBytesAtATime; };
  try {
    while (has_room() && (window.lines.empty() || !reader.would_wait())) {
      if (interrupt_signal() != 0) throw Interrupted("interrupted; what was read before is answered");
      InputLine line;
      line.input.id = reader.line_number();  // of the next line, from 0
      window.more = read_line(reader, how, text, line);
      if (!window.more) break;
      bytes += text.size();
      window.lines.push_back(std::move(line));
    }
  } catch (const Error&) {
    window.end = std::current_exception();
    window.more = false;
  }
  return window;
}

/// Warns of lines that were cropped or are longer than those of training, of prefixes that were not taken whole, and of translations that
/// met a limit. Of what may come often, it warns at the first and counts the rest for the end; of the common prefix it warns once.
class LossWarnings {
 public:
  static constexpr double kMuchUnknown = 0.5;

  explicit LossWarnings(const TextTranslation& how) : common_prefix_(how.prefix), longest_(how.format.longest) {}

  void look_at(const TranslationInput& line, const TranslatedLine& translated) {
    if (translated.is_cropped) log_warning("line {} is longer than the model can read; its end is left out", line.id + 1);
    if (translated.src_pieces > longest_ && ++long_lines_ == 1)
      log_warning(
          "line {} has {} pieces, and the model was trained on sentences of {} at most (data.max_length): its translation may be poor; "
          "one sentence a line is expected",
          line.id + 1, translated.src_pieces, longest_);
    if (translated.unknown_ratio >= kMuchUnknown && ++unknown_ == 1)
      log_warning(
          "line {}: {:.0f} % of its source is unknown to the vocabulary, and its translation may have nothing to do with it; is it in the "
          "language, and in the pieces, that the model was trained on?",
          line.id + 1, 100 * translated.unknown_ratio);
    if (translated.translations.front().is_truncated && ++truncated_ == 1)
      log_warning(
          "line {}: its translation ends where it met a limit (--max-length, --max-length-ratio, or the model's positions), or no other "
          "token was allowed",
          line.id + 1);
    if (!translated.is_prefix_cropped && !translated.has_unknown_prefix) return;
    const bool is_common = line.prefix == common_prefix_;
    if (is_common && std::exchange(has_said_, true)) return;
    const std::string whose = is_common ? "--prefix" : fmt::format("line {}: its prefix", line.id + 1);
    if (translated.is_prefix_cropped)
      log_warning("{} is longer than a translation may be (--max-length, or the model's positions); its end is left out", whose);
    if (translated.has_unknown_prefix) log_warning("{} has what the vocabulary cannot write; the unknown token stands for it", whose);
  }

  void finish() const {
    if (long_lines_ > 1) log_warning("{} lines are longer than the sentences of training", long_lines_);
    if (unknown_ > 1)
      log_warning("{} lines are for the most part unknown to the vocabulary; with --json, \"unknown_ratio\" says which", unknown_);
    if (truncated_ > 1) log_warning("{} translations end where they met a limit; with --json, \"truncated\" says which", truncated_);
  }

 private:
  const std::string& common_prefix_;
  const int64_t longest_;
  bool has_said_ = false;
  int64_t long_lines_ = 0;
  int64_t unknown_ = 0;
  int64_t truncated_ = 0;
};

/// Warns of fields that are passed through and may be meant for options, of each name once.
class NearMissWarnings {
 public:
  void look_at(const InputLine& line) {
    constexpr size_t kMostNames = 20;  // a field of a name of its own in each line tells nothing
    for (const NearMiss& miss : line.near_misses)
      if (names_.size() < kMostNames && names_.insert(miss.key).second) log_warning("{} (passed through as it is)", miss.message);
  }

 private:
  std::set<std::string> names_;
};

/// Warns of translations that the guard flags, of each by its line unless JSON says which they are, and counts them.
class GuardWarnings {
 public:
  explicit GuardWarnings(bool names_lines) : names_lines_(names_lines) {}

  void look_at(int64_t line, const TranslatedLine& translated) {
    const std::optional<GuardVerdict>& verdict = translated.translations.front().guard;
    if (!verdict) return;
    ++lines_;
    second_searches_ += translated.is_second_search ? 1 : 0;
    if (verdict->flags.empty()) return;
    ++flagged_;
    if (!names_lines_) return;
    std::vector<std::string> reasons;
    for (const GuardFlag& flag : verdict->flags)
      reasons.push_back(fmt::format("{} {:.2f} (at {} {:g})", flag.measure, flag.value, flag.is_at_most ? "most" : "least", flag.limit));
    log_warning("line {}: its translation may not be one: {}", line, join(reasons));
  }

  void finish() const {
    if (flagged_ > 0) log_warning("the guard flags {} of {}", flagged_, counted(lines_, "translation"));
    if (second_searches_ > 0)
      log_warning("{} found by a second search, without repetitions",
                  second_searches_ == 1 ? "1 translation was" : fmt::format("{} translations were", second_searches_));
  }

 private:
  const bool names_lines_;
  int64_t lines_ = 0, flagged_ = 0, second_searches_ = 0;
};

/// True if translations may appear on the terminal, where a bar would stand among them.
bool output_may_be_seen(const std::string& output) {
  struct stat status = {};
  return output == "-" && !(fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode));
}

}  // namespace

namespace {

/// Translates lines, or the sentences of each.
std::vector<TranslatedLine> translated_lines(const std::vector<InputLine>& lines, const LineReader& reader, Translator& translator,
                                             const TextTranslation& how, TranslationProgress& progress) {
  std::vector<TranslationInput> inputs;
  inputs.reserve(lines.size());
  std::vector<std::optional<SplitText>> texts(lines.size());  // none of a line that is translated as it is
  const bool are_drawn = how.format.lines.common.sampling != Sampling::kNone;
  for (size_t i = 0; i < lines.size(); ++i) {
    const InputLine& line = lines[i];
    TranslationInput input = line.input;
    if (!how.splitting && !how.terms && line.terms.is_empty()) {
      input.is_aligned = how.format.alignment;
      inputs.push_back(std::move(input));
      continue;
    }
    std::vector<const document::Terms*> terms = {&line.terms};
    if (how.terms) terms.push_back(how.terms.get());
    auto document = document::plain_document(input.text, how.splitting.get(), terms);
    input.is_aligned = how.format.alignment || document->needs_links();
    texts[i].emplace(std::move(document), std::move(input), are_drawn).append_to(inputs);
  }
  progress.begin(std::ssize(lines), std::ssize(inputs), reader);
  std::vector<TranslatedLine> translated = translator.translate(inputs);
  std::vector<TranslatedLine> whole;
  whole.reserve(lines.size());
  std::span<TranslatedLine> left = translated;
  for (const std::optional<SplitText>& text : texts) {
    const size_t count = text ? text->size() : 1;
    whole.push_back(text ? text->joined(left.first(count)) : std::move(left.front()));
    left = left.subspan(count);
  }
  progress.end(whole);
  return whole;
}

}  // namespace

TranslatedText translate_text(LineReader& reader, Output& output, Translator& translator, const TextTranslation& how,
                              TranslationProgress& progress) {
  LossWarnings warnings(how);
  NearMissWarnings near_misses;
  GuardWarnings guard(!how.format.json);
  TranslatedText done;
  const int64_t lines_before = reader.line_number();
  const auto lines_left = [&] { return how.most_lines.value_or(std::numeric_limits<int64_t>::max()) - done.lines; };
  try {
    for (bool more = true; more && lines_left() > 0;) {
      if (how.look) how.look();
      const Window window = read_window(reader, static_cast<size_t>(std::min<int64_t>(kLinesAtATime, lines_left())), how);
      const std::vector<InputLine>& lines = window.lines;
      more = window.more;
      const std::vector<TranslatedLine> translated = translated_lines(lines, reader, translator, how, progress);
      std::string written;
      for (size_t i = 0; i < lines.size(); ++i) {
        near_misses.look_at(lines[i]);
        warnings.look_at(lines[i].input, translated[i]);
        guard.look_at(lines[i].input.id + 1, translated[i]);
        written += format_translations(lines[i], translated[i], how.format);
        done.bad_lines += lines[i].error.empty() ? 0 : 1;
      }
      done.is_read = output.write(written);
      if (!done.is_read) return done;
      done.lines += std::ssize(lines);
      if (window.end) std::rethrow_exception(window.end);
    }
  } catch (...) {
    progress.hide();
    if (!how.most_lines) output.keep_partial_of(done.lines);
    throw;
  }
  if (done.lines != reader.line_number() - lines_before)
    throw MachineError(std::to_string(reader.line_number() - lines_before) + " lines came in and " + std::to_string(done.lines) +
                       " went out; this is a fault of the program");
  warnings.finish();
  guard.finish();
  return done;
}

TranslationProgress::TranslationProgress(const std::string& input, const std::string& output, bool quiet)
    : is_told_(!quiet && stderr_is_terminal()), bar_(0, quiet || output_may_be_seen(output)) {
  if (is_told_ && input == "-" && isatty(STDIN_FILENO) == 1) log_info("ready: one sentence a line; Ctrl-D ends");
}

void TranslationProgress::begin(int64_t lines, int64_t sentences, const LineReader& reader) {
  window_lines_ = lines;
  window_sentences_ = sentences;
  window_done_ = 0;
  window_share_ = reader.share_read();
  window_begin_ = Clock::now();
}

void TranslationProgress::add_sentence() {
  const std::lock_guard lock(mutex_);
  ++window_done_;
  if (!bar_.is_due()) return;
  const double of_window = static_cast<double>(window_done_) / static_cast<double>(window_sentences_);
  const int64_t lines = lines_ + static_cast<int64_t>(of_window * static_cast<double>(window_lines_));
  bar_.draw(share_ + of_window * (window_share_ - share_),
            fmt::format("{}, {:.1f} lines/s", counted(lines, "line"), static_cast<double>(lines) / seconds()));
}

void TranslationProgress::end(const std::vector<TranslatedLine>& translated) {
  bar_.hide();
  seconds_ = seconds();
  lines_ += window_lines_;
  share_ = window_share_;
  for (const TranslatedLine& line : translated) tokens_ += std::ssize(line.translations.front().tokens);
}

void TranslationProgress::finish() const {
  if (!is_told_) return;
  log_info("translated {} in {:.1f} s: {:.1f} lines/s, {:.0f} tokens/s", counted(lines_, "line"), seconds_,
           static_cast<double>(lines_) / seconds_, static_cast<double>(tokens_) / seconds_);
}

}  // namespace lacuna

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/line_reader.h"
#include "base/output.h"
#include "base/progress_bar.h"
#include "document/paragraph.h"
#include "document/terms.h"
#include "run/line_fields.h"
#include "run/line_options.h"
#include "search/translator.h"

namespace lacuna {

/// The form of input lines and of translations.
struct TranslationFormat {
  bool json = false;    ///< one JSON object a line: {"text": ..., "prefix": ...} in; the same object with "translation", "score", ... out,
                        ///< in place of those of an earlier translation
  bool n_best = false;  ///< prints every translation: `id ||| text ||| [alignment |||] F0= log_prob ||| score`, or "translations" in JSON
  bool scores = false;  ///< text lines begin with score and tab
  bool alignment = false;
  bool takes_terms = true;                     ///< in JSON; false where links are of pieces
  bool paragraphs = false;                     ///< a text may have several sentences, and in JSON line breaks
  bool tokens = false;                         ///< JSON: adds the pieces of translations and their log-probabilities
  int64_t longest = 0;                         ///< pieces of the longest sentence of training: longer sources are told of
  bool attention = false;                      ///< JSON of a service: its caller adds the attention
  LineSettings lines = {};                     ///< JSON: what lines may ask for themselves
  std::shared_ptr<const Vocabulary> tgt = {};  ///< JSON: has the pieces of translations
};

/// One line of input: the text to translate, and in JSON the object it came in.
struct InputLine {
  TranslationInput input;
  nlohmann::ordered_json fields;
  document::Terms terms = {};  ///< of this line alone
  bool wants_tokens = false;   ///< it has "tokens": true
  std::vector<NearMiss> near_misses = {};
  std::string error = {};  ///< why a line that is passed over cannot be taken; its text is empty
};

/// Reads the text of a line that came from `place` into `line`; where JSON is expected, an empty line is an empty text. Throws LineError if
/// it is to be JSON and is not an object with a string "text", its "terms" are wrong, or it asks for itself what it may not
/// (line_options.h, line_fields.h), or, where lines are bounded, almost does; `line` then has the fields of the object, if it is one.
void parse_input_line(const std::string& text, const std::string& place, const TranslationFormat& format, InputLine& line);

/// Adds to the JSON of a translation, which has that rank, what else is known of it.
using AddToTranslation = std::function<void(size_t rank, nlohmann::ordered_json& translation)>;

/// Returns the output for one line of input: one line, or n_best lines of text; each ends in LF. A line that is passed over has that of an
/// empty one, in JSON its own fields and "error".
std::string format_translations(const InputLine& line, const TranslatedLine& translated, const TranslationFormat& format,
                                const AddToTranslation& add = {});

/// Returns what the guard says of a translation as a JSON object: each measure, "risk", and in "flags" the names of those beyond limits.
nlohmann::ordered_json guard_json(const GuardVerdict& verdict);

/// What `lacuna translate` tells a person at a terminal: that it waits for sentences to be typed, a progress bar, a closing line.
class TranslationProgress {
 public:
  /// `input` and `output` are the paths that the verb was given. Nothing is told if `quiet`, or if stderr is no terminal.
  TranslationProgress(const std::string& input, const std::string& output, bool quiet);

  /// Begins a window of lines that were read, with all their sentences; the bar goes by the share of the input's bytes.
  void begin(int64_t lines, int64_t sentences, const LineReader& reader);
  /// Counts a sentence of the window as translated. Any thread may call it.
  void add_sentence();
  /// Ends the window, and clears the bar's line for other output.
  void end(const std::vector<TranslatedLine>& translated);
  /// Clears the bar's line.
  void hide() { bar_.hide(); }
  /// Prints how many lines and tokens were translated, and how fast, without the time in which sentences were waited for.
  void finish() const;

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return seconds_ + std::chrono::duration<double>(Clock::now() - window_begin_).count(); }

  bool is_told_;
  std::mutex mutex_;
  int64_t lines_ = 0, window_lines_ = 0, window_sentences_ = 0, window_done_ = 0, tokens_ = 0;
  double share_ = 0, window_share_ = 0;  ///< shares of the input before the window, and with it
  double seconds_ = 0;                   ///< spent on the windows before
  Clock::time_point window_begin_;
  ProgressBar bar_;
};

/// How `lacuna translate` takes a text.
struct TextTranslation {
  std::string prefix;  ///< for lines that bring none of their own
  TranslationFormat format;
  OnBadLine bad_lines = OnBadLine::kStop;
  std::shared_ptr<const document::Splitting> splitting = {};  ///< null: a line is a sentence
  std::shared_ptr<const document::Terms> terms = {};          ///< of all lines; null: none
  std::optional<int64_t> most_lines = {};  ///< of a text in parts: translates so many, if there are, and keeps no partial output
  std::function<void()> look = {};         ///< called before lines are read; it may throw to end the work
};

/// How much of a text was translated.
struct TranslatedText {
  int64_t lines = 0, bad_lines = 0;  ///< all of them, and those that were passed over
  bool is_read = true;               ///< false if nobody reads the output any more
};

/// Translates the lines that are left as they come, by the reader's numbers, and warns of each bad one that is passed over. Whatever ends
/// it early, such as a bad line that is not (LineError) or a signal (Interrupted), is thrown after what was read before it is written; a
/// file is then kept as a partial one.
TranslatedText translate_text(LineReader& reader, Output& output, Translator& translator, const TextTranslation& how,
                              TranslationProgress& progress);

}  // namespace lacuna

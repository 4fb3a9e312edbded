#include "search/translator.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "text/invisible_characters.h"
#include "text/joiner.h"

namespace lacuna {
namespace {

constexpr int64_t kLinesPerTask = 32;  // of work done line by line
constexpr int64_t kUsualRows = 8;      // hypotheses of a sentence; with more, a batch has fewer sentences, to bound its memory

/// Returns how many hypotheses of a sentence are extended at a time.
int64_t hypotheses_of(const TranslateOptions& options) {
  return options.sampling == Sampling::kNone ? options.beam_size : options.n_best;
}

/// Replaces line breaks, which byte pieces may spell, by spaces: a translation is one line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

/// Returns true if the translation of a line is flagged and repeats itself.
bool is_to_be_searched_again(const TranslatedLine& line) {
  const Translation& best = line.translations.front();
  return !best.guard->flags.empty() && repeats_itself(best.tokens);
}

/// Replaces the translations of a line by those of a second search if these have the lower risk.
void keep_less_risky(TranslatedLine& line, std::vector<Translation> found) {
  if (found.front().guard->risk >= line.translations.front().guard->risk) return;
  line.translations = std::move(found);
  line.is_second_search = true;
}

/// Returns the share of unknown tokens among those that are not spaces.
double unknown_ratio(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  const auto unknown = std::ranges::count(ids, kUnk);
  const auto all = std::ranges::count_if(ids, [&](TokenId id) { return vocabulary.piece(id) != kSpace; });
  return all > 0 ? static_cast<double>(unknown) / static_cast<double>(all) : 0;
}

/// Returns the text of a finished hypothesis, as its tokens spell it.
std::string decoded(const Vocabulary& tgt, const Hypothesis& hypothesis) {
  return one_line(tgt.decode(std::span(hypothesis.tokens).first(hypothesis.tokens.size() - 1)));
}

}  // namespace

Translator::Translator(StepModelPtr model, Vocabularies vocabularies, TranslatorSettings settings)
    : model_(std::move(model)),
      vocabularies_(std::move(vocabularies)),
      settings_(std::move(settings)),
      search_{settings_.options, Constraints(settings_.options, *vocabularies_.tgt),
              settings_.alignment == AlignmentLevel::kNone && settings_.options.guard == Guard::kNone ? -1 : settings_.alignment_layer,
              settings_.seed, settings_.shortlist} {
  search_.look = settings_.look;
  search_.alignment_head = settings_.alignment_head;
  if (settings_.options.sampling == Sampling::kNone)
    search_.text_of = [tgt = vocabularies_.tgt, joiner = settings_.options.joiner](const Hypothesis& hypothesis) {
      return joined(decoded(*tgt, hypothesis), joiner);
    };
}

SearchInput Translator::prepared(const TranslationInput& line, TranslatedLine& result) const {
  SearchInput input{vocabularies_.src->encode(source_text(*vocabularies_.src, line.text)), {}, line.id};
  input.is_aligned = line.is_aligned || settings_.options.guard != Guard::kNone;
  if (line.options) {
    input.own = std::make_shared<const SentenceOptions>(*line.options, *vocabularies_.tgt);
    input.share = (hypotheses_of(*line.options) - 1) / std::max(kUsualRows, hypotheses_of(settings_.options)) + 1;
  }
  const int64_t positions = model_->max_positions(), limit = positions > 0 ? std::min(positions, kMostSourceTokens) : kMostSourceTokens;
  if (static_cast<int64_t>(input.src.size()) >= limit) {
    input.src.resize(static_cast<size_t>(limit - 1));
    result.is_cropped = true;
  }
  result.src_pieces = std::ssize(input.src);
  result.unknown_ratio = unknown_ratio(*vocabularies_.src, input.src);
  if (input.src.empty()) return input;
  input.src.push_back(kEos);
  if (const TokenId start = vocabularies_.tgt->start(); line.prefix.empty() && start != kUnk) input.prefix = {start};
  if (line.prefix.empty()) return input;
  input.prefix = vocabularies_.tgt->encode(line.prefix);
  result.has_unknown_prefix = std::find(input.prefix.begin(), input.prefix.end(), kUnk) != input.prefix.end();
  result.is_prefix_cropped = std::ssize(input.prefix) >= length_limit(options_of(input, search_), input, positions);
  return input;
}

std::vector<TranslatedLine> Translator::translate(const std::vector<TranslationInput>& lines) {
  std::vector<TranslatedLine> results(lines.size());
  std::vector<SearchInput> inputs(lines.size());
  at::parallel_for(0, static_cast<int64_t>(lines.size()), kLinesPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) inputs[i] = prepared(lines[i], results[i]);
  });
  std::vector<size_t> order;  // lines with something in them, long ones first
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!inputs[i].src.empty()) {
      order.push_back(i);
    } else {
      complete(lines[i], inputs[i], {}, results[i]);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return inputs[a].src.size() > inputs[b].src.size(); });
  std::vector<std::vector<Translation>> found = translations({lines, inputs, order}, search_, settings_.on_sentence);
  for (size_t i = 0; i < order.size(); ++i) results[order[i]].translations = std::move(found[i]);
  if (settings_.options.guard == Guard::kRetry) search_again({lines, inputs, order}, results);
  return results;
}

/// Returns the translations of each line of `order`.
std::vector<std::vector<Translation>> Translator::translations(const Lines& lines, const SearchSettings& how,
                                                               const std::function<void()>& on_sentence) const {
  const SearchResults found = searched(lines, how, on_sentence);
  std::vector<std::vector<Translation>> all(found.size());
  at::parallel_for(0, static_cast<int64_t>(found.size()), kLinesPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      for (const Hypothesis& hypothesis : found[i])
        all[i].push_back(finished(hypothesis, lines.lines[lines.order[i]], lines.inputs[lines.order[i]]));
  });
  return all;
}

/// Searches again, without repeated n-grams, for lines whose translation is flagged and repeats itself; keeps what has the lower risk.
void Translator::search_again(const Lines& lines, std::vector<TranslatedLine>& results) const {
  std::vector<SearchInput> inputs = lines.inputs;
  Lines again{lines.lines, inputs, {}};
  for (const size_t i : lines.order) {
    if (!is_to_be_searched_again(results[i])) continue;
    again.order.push_back(i);
    inputs[i] = without_repetitions(inputs[i]);
  }
  if (again.order.empty()) return;
  std::vector<std::vector<Translation>> found = translations(again, without_repetitions(), {});
  for (size_t i = 0; i < again.order.size(); ++i) keep_less_risky(results[again.order[i]], std::move(found[i]));
}

/// Returns the settings of the search, with n-grams that come once each.
SearchSettings Translator::without_repetitions() const {
  SearchSettings how = search_;
  how.options.no_repeat_ngram_size = kRetryNgramSize;
  how.constraints = Constraints(how.options, *vocabularies_.tgt);
  return how;
}

/// Does that for the options that a sentence has of its own.
SearchInput Translator::without_repetitions(SearchInput input) const {
  if (!input.own) return input;
  TranslateOptions options = input.own->options;
  options.no_repeat_ngram_size = kRetryNgramSize;
  input.own = std::make_shared<const SentenceOptions>(options, *vocabularies_.tgt);
  return input;
}

void Translator::complete(const TranslationInput& line, const SearchInput& input, const std::vector<Hypothesis>& found,
                          TranslatedLine& result) const {
  const bool is_guarded = settings_.options.guard != Guard::kNone;
  if (input.src.empty()) {
    if (result.translations.emplace_back(); is_guarded) result.translations.front().guard = GuardVerdict();
    return;
  }
  result.translations.reserve(found.size());
  for (const Hypothesis& hypothesis : found) result.translations.push_back(finished(hypothesis, line, input));
  if (settings_.options.guard != Guard::kRetry || !is_to_be_searched_again(result)) return;
  std::vector<TranslatedLine> results = {std::move(result)};
  search_again({{line}, {input}, {0}}, results);
  result = std::move(results.front());
}

/// Searches for the translations of the lines of `order`. Each thread has its own batch and refills it from a
/// common queue; where there is only enough for one batch, all threads share its work.
SearchResults Translator::searched(const Lines& lines, const SearchSettings& how, const std::function<void()>& on_sentence) const {
  std::vector<SearchInput> in_order;
  in_order.reserve(lines.order.size());
  int64_t tokens = 0;
  for (const size_t i : lines.order) {
    in_order.push_back(lines.inputs[i]);
    tokens += static_cast<int64_t>(lines.inputs[i].src.size());
  }
  int64_t workers = num_workers();
  const int64_t room = batch_tokens(workers);
  workers = std::min({workers, (tokens - 1) / room + 1, std::ssize(lines.order)});  // a sentence is one worker's
  FixedSearchQueue queue(std::move(in_order), room, on_sentence);
  if (workers < 2) {
    search(*model_, queue, how);
  } else {
    at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
      const at::NoGradGuard no_gradients;
      search(*model_, queue, how);
    });
  }
  return std::move(queue).results();
}

int64_t Translator::batch_tokens(int64_t workers) const {
  constexpr int64_t kEnough = 1024;  // tokens of a batch that keep a thread's products fast
  const TranslateOptions& options = settings_.options;
  const int64_t tokens = workers > 1 ? std::min(options.batch_tokens, kEnough) : options.batch_tokens;
  const int64_t rows = hypotheses_of(options);
  return rows > kUsualRows ? std::max<int64_t>(1, tokens / rows * kUsualRows + tokens % rows * kUsualRows / rows) : tokens;
}

int64_t Translator::num_workers() const {
  return model_->is_thread_safe() ? at::get_num_threads() : 1;
}

Translation Translator::finished(const Hypothesis& hypothesis, const TranslationInput& line, const SearchInput& input) const {
  Translation translation;
  translation.tokens.assign(hypothesis.tokens.begin(), hypothesis.tokens.end() - 1);
  const std::string pieces = decoded(*vocabularies_.tgt, hypothesis);
  translation.text = joined(pieces, settings_.options.joiner);
  translation.score = hypothesis.score;
  translation.token_log_probs = hypothesis.token_log_probs;
  for (const float log_prob : hypothesis.token_log_probs) translation.log_prob += log_prob;
  translation.is_truncated = hypothesis.is_truncated;
  if (settings_.alignment != AlignmentLevel::kNone && !hypothesis.alignment.empty())
    translation.alignment = links(hypothesis, pieces, line, input);
  if (settings_.options.guard != Guard::kNone)
    translation.guard =
        judge({input.src, hypothesis.tokens, hypothesis.token_log_probs, hypothesis.alignment}, settings_.options.guard_limits);
  return translation;
}

/// Links each target word (or piece) to the source word (or piece) with the largest weight, where weights are summed
/// over the pieces of a source word and averaged over those of a target word. eos is left out on both sides.
std::vector<std::pair<int32_t, int32_t>> Translator::links(const Hypothesis& hypothesis, const std::string& text,
                                                           const TranslationInput& line, const SearchInput& input) const {
  const bool by_words = settings_.alignment == AlignmentLevel::kWord;
  const size_t src_pieces = input.src.size() - 1, tgt_pieces = hypothesis.tokens.size() - 1;
  std::vector<int32_t> src_units(src_pieces), tgt_units(tgt_pieces);
  std::iota(src_units.begin(), src_units.end(), 0);
  std::iota(tgt_units.begin(), tgt_units.end(), 0);
  if (by_words) {
    src_units = words_of(*vocabularies_.src, source_text(*vocabularies_.src, line.text), std::span(input.src).first(src_pieces));
    tgt_units = words_of(*vocabularies_.tgt, text, std::span(hypothesis.tokens).first(tgt_pieces));
  }
  std::map<int32_t, std::map<int32_t, double>> weights;  // target unit, source unit; a mean's divisor would not move its maximum
  for (size_t t = 0; t < tgt_pieces; ++t)
    for (size_t s = 0; s < src_pieces; ++s) weights[tgt_units[t]][src_units[s]] += (*hypothesis.alignment[t])[s];
  std::vector<std::pair<int32_t, int32_t>> links;
  for (const auto& [tgt, row] : weights) {
    const auto best = std::max_element(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best->second > 0) links.emplace_back(best->first, tgt);
  }
  return links;
}

/// Returns, for each token of a text, the index of its word after pieces are joined.
std::vector<int32_t> Translator::words_of(const Vocabulary& vocabulary, const std::string& text, std::span<const TokenId> tokens) const {
  std::vector<int32_t> words = vocabulary.words_of(text, tokens);
  if (settings_.options.joiner.empty()) return words;
  const std::vector<int32_t> whole = joined_words(text, settings_.options.joiner);
  for (int32_t& word : words) word = whole.at(static_cast<size_t>(word));
  return words;
}

std::vector<std::string> translate_lines(StepModel& model, const Vocabularies& vocabularies, const std::vector<std::string>& lines,
                                         const TranslateOptions& options) {
  std::vector<TranslationInput> inputs;
  for (size_t i = 0; i < lines.size(); ++i) inputs.push_back({lines[i], "", static_cast<int64_t>(i)});
  return translate_lines(model, vocabularies, inputs, options);
}

std::vector<std::string> translate_lines(StepModel& model, const Vocabularies& vocabularies, const std::vector<TranslationInput>& lines,
                                         const TranslateOptions& options) {
  TranslateOptions one_best = options;
  one_best.n_best = 1;
  one_best.guard = Guard::kNone;
  Translator translator(StepModelPtr(&model, [](StepModel*) {}), vocabularies, {one_best});
  std::vector<std::string> texts;
  for (const TranslatedLine& line : translator.translate(lines)) texts.push_back(line.translations.front().text);
  return texts;
}

}  // namespace lacuna

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/content_hash.h"
#include "base/mapped_file.h"
#include "config/options.h"
#include "data/bad_lines.h"
#include "data/word_links.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Counts of what was read from one corpus or several.
struct DataSummary {
  int64_t lines = 0;                                     ///< pairs in the files
  int64_t kept = 0;                                      ///< sentence pairs to train on
  int64_t empty = 0;                                     ///< skipped: one side or both are empty
  int64_t skipped = 0;                                   ///< skipped: longer than max_length
  int64_t uneven = 0;                                    ///< skipped: one side is more than max_length_ratio times as long
  int64_t low_scores = 0;                                ///< passed over: their score is below min_score
  int64_t cropped = 0;                                   ///< cut to max_length
  BadLines bad;                                          ///< skipped: they cannot be taken
  int64_t carriage_returns = 0;                          ///< line ends that were CR LF
  int64_t other_line_ends = 0;                           ///< lines that contain U+2028 or another line end of other programs, kept as text
  int64_t src_tokens = 0, tgt_tokens = 0;                ///< tokens of the kept pairs, eos included
  int64_t src_unk = 0, tgt_unk = 0;                      ///< unknown ones among these
  std::array<int64_t, 16> src_lengths{}, tgt_lengths{};  ///< histograms of lengths in steps of 16 tokens; the last holds all longer ones

  DataSummary& operator+=(const DataSummary& other);
  double src_unk_rate() const { return src_tokens > 0 ? static_cast<double>(src_unk) / static_cast<double>(src_tokens) : 0; }
  double tgt_unk_rate() const { return tgt_tokens > 0 ? static_cast<double>(tgt_unk) / static_cast<double>(tgt_tokens) : 0; }
  /// Returns the counts as one line for the log.
  std::string text() const;
};

/// Items of any size, end to end in one file; in another, where each of them begins and the last one ends (uint64).
template <class Unit>
class MappedItems {
 public:
  MappedItems(const std::filesystem::path& units, const std::filesystem::path& offsets)
      : units_(std::make_unique<MappedFile>(units)), offsets_(std::make_unique<MappedFile>(offsets)) {}

  /// Returns true if there are `count` items, all within the file. REQUIRES of the functions below: it was asked, and was true.
  bool holds(int64_t count) const {
    if (units_->size() % sizeof(Unit) != 0 || offsets_->size() % sizeof(uint64_t) != 0) return false;
    const std::span offsets = all_offsets();
    return count >= 0 && offsets.size() == static_cast<uint64_t>(count) + 1 && offsets.front() == 0 && offsets.back() == all().size() &&
           std::ranges::is_sorted(offsets);
  }
  std::span<const Unit> all() const { return {reinterpret_cast<const Unit*>(units_->data()), units_->size() / sizeof(Unit)}; }
  std::span<const Unit> at(int64_t item) const {
    const uint64_t begin = all_offsets()[static_cast<size_t>(item)], end = all_offsets()[static_cast<size_t>(item) + 1];
    if (begin > end || end > all().size()) offsets_->fail_as_changed();
    return all().subspan(begin, end - begin);
  }
  /// Throws MachineError if a file was changed since it was opened (MappedFile).
  void require_unchanged() const {
    units_->require_unchanged();
    offsets_->require_unchanged();
  }
  /// Adds the bytes of both files to a hash.
  void add_to(ContentHash& hash) const {
    hash.add({units_->data(), units_->size()});
    hash.add({offsets_->data(), offsets_->size()});
  }

 private:
  std::span<const uint64_t> all_offsets() const {
    return {reinterpret_cast<const uint64_t*>(offsets_->data()), offsets_->size() / sizeof(uint64_t)};
  }

  std::unique_ptr<MappedFile> units_, offsets_;
};

/// A side of a corpus in the folder of its cache: the ids of each sentence and, if it is kept, its text.
struct CorpusSide {
  MappedItems<TokenId> ids;
  std::optional<MappedItems<char>> text;
};

struct CorpusCache;

/// A parallel corpus as token ids in files that are mapped unless they are small: constant memory whatever its size. Every sentence ends in
/// eos.
class TokenizedCorpus {
 public:
  int64_t size() const { return size_; }
  std::span<const TokenId> src(int64_t sentence) const { return src_->ids.at(sentence); }
  std::span<const TokenId> tgt(int64_t sentence) const { return tgt_->ids.at(sentence); }
  int32_t src_length(int64_t sentence) const { return static_cast<int32_t>(src(sentence).size()); }
  int32_t tgt_length(int64_t sentence) const { return static_cast<int32_t>(tgt(sentence).size()); }
  /// Returns the original text. REQUIRES: the corpus was opened with text (for subword sampling).
  bool has_text() const { return src_->text.has_value(); }
  std::string_view src_text(int64_t sentence) const { return text(*src_, sentence); }
  std::string_view tgt_text(int64_t sentence) const { return text(*tgt_, sentence); }
  /// Returns true if the corpus has links between words; it was then opened with text.
  bool has_links() const { return links_.has_value(); }
  /// Returns the links between the words of the two texts. REQUIRES: has_links().
  std::span<const WordLink> links(int64_t sentence) const { return links_->at(sentence); }
  /// Throws MachineError if a file of the cache was changed while it was in use: what was read before the call is sound.
  void require_unchanged() const;
  const DataSummary& summary() const { return summary_; }
  /// The file that lists the bad lines that were skipped, by reject_line(); empty if there are none.
  const std::filesystem::path& rejects() const { return rejects_; }
  /// Hash of the files' contents and of the settings by which they are read; a resumed run compares it.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Opens the corpus from the cache folder, and first makes the cache if it is missing or of other files, vocabularies
  /// or options. Throws DataError for files that are missing or of different line counts, lines that lack a column, NUL
  /// bytes, text that is not UTF-8, a sentence that is too long if `data.long` is error, and if nothing is left to
  /// train on; MachineError if the cache cannot be written.
  static std::shared_ptr<const TokenizedCorpus> open(const CorpusOptions& corpus, const DataOptions& options,
                                                     const Vocabularies& vocabularies, const std::string& cache_folder);
  /// Makes the corpus of the files of a cache.
  static std::shared_ptr<const TokenizedCorpus> of(CorpusCache cache);

 private:
  static std::string_view text(const CorpusSide& side, int64_t sentence) {
    const auto text = side.text->at(sentence);
    return {text.data(), text.size()};
  }

  std::optional<CorpusSide> src_, tgt_;
  std::optional<MappedItems<WordLink>> links_;
  int64_t size_ = 0;
  DataSummary summary_;
  std::string fingerprint_;
  std::filesystem::path rejects_;
};

}  // namespace lacuna

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"
#include "config/options.h"
#include "data/bad_lines.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Counts of what was read from one corpus or several.
struct DataSummary {
  int64_t lines = 0;                                     ///< pairs in the files
  int64_t kept = 0;                                      ///< sentence pairs to train on
  int64_t empty = 0;                                     ///< skipped: one side or both are empty
  int64_t skipped = 0;                                   ///< skipped: longer than max_length
  int64_t uneven = 0;                                    ///< skipped: one side is more than max_length_ratio times as long
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

/// A parallel corpus as token ids in memory-mapped files: constant memory whatever its size. Every sentence ends in eos.
class TokenizedCorpus {
 public:
  int64_t size() const { return size_; }
  std::span<const TokenId> src(int64_t sentence) const { return ids(src_, sentence); }
  std::span<const TokenId> tgt(int64_t sentence) const { return ids(tgt_, sentence); }
  int32_t src_length(int64_t sentence) const { return static_cast<int32_t>(src(sentence).size()); }
  int32_t tgt_length(int64_t sentence) const { return static_cast<int32_t>(tgt(sentence).size()); }
  /// Returns the original text. REQUIRES: the corpus was opened with text (for subword sampling).
  bool has_text() const { return src_.text != nullptr; }
  std::string_view src_text(int64_t sentence) const { return text(src_, sentence); }
  std::string_view tgt_text(int64_t sentence) const { return text(tgt_, sentence); }
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

 private:
  struct Side {
    std::unique_ptr<MappedFile> ids, offsets, text, text_offsets;
  };
  static Side open_side(const std::filesystem::path& folder, const std::string& name, bool with_text);
  static std::span<const TokenId> ids(const Side& side, int64_t sentence) {
    const auto* offsets = reinterpret_cast<const uint64_t*>(side.offsets->data());
    const auto* ids = reinterpret_cast<const TokenId*>(side.ids->data());
    return {ids + offsets[sentence], ids + offsets[sentence + 1]};
  }
  static std::string_view text(const Side& side, int64_t sentence) {
    const auto* offsets = reinterpret_cast<const uint64_t*>(side.text_offsets->data());
    return {side.text->data() + offsets[sentence], offsets[sentence + 1] - offsets[sentence]};
  }

  Side src_, tgt_;
  int64_t size_ = 0;
  DataSummary summary_;
  std::string fingerprint_;
  std::filesystem::path rejects_;
};

}  // namespace lacuna

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace lacuna {

/// Forwards to another vocabulary; tests override single functions.
class OtherVocabulary : public Vocabulary {
 public:
  explicit OtherVocabulary(VocabularyPtr one) : one_(std::move(one)) {}

  int64_t size() const override { return one_->size(); }
  std::vector<TokenId> encode(std::string_view line) const override { return one_->encode(line); }
  std::vector<TokenId> sample(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const override {
    return one_->sample(line, alpha, nbest, random_key);
  }
  std::string decode(std::span<const TokenId> ids) const override { return one_->decode(ids); }
  const std::string& piece(TokenId id) const override { return one_->piece(id); }
  TokenId id_of(std::string_view piece) const override { return one_->id_of(piece); }
  std::vector<int32_t> words_of(std::string_view line, std::span<const TokenId> ids) const override { return one_->words_of(line, ids); }
  const std::string& serialized() const override { return one_->serialized(); }
  bool is_sentencepiece() const override { return one_->is_sentencepiece(); }
  std::string normalization() const override { return one_->normalization(); }

 private:
  VocabularyPtr one_;
};

}  // namespace lacuna

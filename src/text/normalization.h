#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Rules by which text is normalized before SentencePiece cuts it into pieces, under SentencePiece's names: nmt_nfkc, nfkc,
/// nmt_nfkc_cf, nfkc_cf, identity. A model file holds one, for what it reads. Where the sides that share a vocabulary have
/// different rules, it is the source's, and the target's stands in a field that other programs pass over.
namespace lacuna {

/// Normalizes text by a rule. Making one trains a tiny SentencePiece model, which is what has the rule.
class Normalizer {
 public:
  explicit Normalizer(std::string rule);
  ~Normalizer();

  std::string operator()(const std::string& line) const;
  const std::string& rule() const { return rule_; }
  /// Returns the rule as a model file holds it.
  const std::string& serialized() const { return serialized_; }

 private:
  struct Model;

  std::string rule_, serialized_;
  std::unique_ptr<Model> model_;
};

/// Returns the model file with these rules for what each side reads.
std::string with_rules(const std::string& model, const Normalizer& src, const Normalizer& tgt);
/// Returns the model file that reads targets, if this one has a rule, or a whole model (piece_list.h), of its own for them.
std::optional<std::string> model_for_targets(const std::string& model);
/// Returns the name of a model file's rule for what it reads.
std::string rule_of(const std::string& model);

}  // namespace lacuna

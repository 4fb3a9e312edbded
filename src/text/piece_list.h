#pragma once

#include <optional>
#include <string>
#include <vector>

/// Vocabularies of models that other programs have trained: SentencePiece cuts text into pieces, and a list has their ids. The list is kept
/// in the SentencePiece model's own file, in fields that other programs pass over. A piece that is not in the list is unknown.
///
/// A tag at the beginning of a line is taken off as one token before the rest is cut: `>>xxx<<`, whatever stands between, as Marian models
/// have it; and language codes of the list, `__xx__` of M2M100 and `xxx_Xxxx` of NLLB, which translations do not show.
namespace lacuna {

struct PieceList {
  std::vector<std::string> pieces;  ///< by their ids: unk 0, bos 1, eos 2, then the others
  std::string start = {};           ///< the tag that a line without one gets; empty = none
};

/// Returns the model file with this list.
std::string with_piece_list(const std::string& model, const PieceList& list);
/// Returns the model file that reads sources, made to hold that which reads targets, too: one list of ids, two ways to cut text.
std::string with_model_for_targets(const std::string& model, const std::string& of_targets);
/// True for what with_model_for_targets() has made.
bool has_model_for_targets(const std::string& model);
/// Returns the model file as other programs need it: without list, start and model for targets.
std::string without_piece_list(const std::string& model);
/// Reads the list of a model file, if it has one. Throws DataError, naming `name`, for pieces that are empty, no text or there twice, and
/// for a start that is not in the list.
std::optional<PieceList> piece_list_of(const std::string& model, const std::string& name);

/// Returns how many bytes of a line are its tag of the form `>>xxx<<`, which holds no space; 0 if there is none.
size_t length_of_bracketed_tag(std::string_view line);
/// True for the form of a language code: `__xx__` or `xxx_Xxxx`.
bool is_language_code(std::string_view piece);

}  // namespace lacuna

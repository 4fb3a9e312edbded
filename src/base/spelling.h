#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// Joins words into a list: "softmax, topk, rela".
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Joins the first `count` words and counts the others: "a, b, c and 4 more".
std::string join_first(const std::vector<std::string>& words, size_t count = 3);

/// A number with a noun that takes an s: "1 checkpoint", "2 checkpoints".
std::string counted(int64_t count, std::string_view noun);

/// Returns the known word nearest to `word` by edit distance (case, - and _ do not count); failing that, one that begins with `word`, or
/// whose part before the first _ is one edit away (`encoder_self` for `encodr`). Empty if no known word is near.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

/// The end of an error message: ". Did you mean "sparsemax"?", or empty if no known word is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

/// Returns the language part of a code in lower case: `zh` for `zh-Hans`, `zh_CN` and `ZH`, `sr` for `sr@latin`.
std::string language_of(const std::string& code);

/// The end of an error message about a language code that does not begin with one to three letters, or that is a country's (cn, jp): says
/// what to write instead. Empty if the code is valid or empty.
std::string language_code_error(const std::string& code);

/// The end of an error message about a joiner (the mark, such as @@, at the end of a piece whose word continues) that contains white space.
/// Empty if the joiner is valid or empty.
std::string joiner_error(const std::string& joiner);

}  // namespace lacuna

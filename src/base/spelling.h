#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// "softmax, topk, rela".
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// "a, b, c and 4 more": the first few words.
std::string join_first(const std::vector<std::string>& words, size_t count = 3);

/// "1 checkpoint", "2 checkpoints": of a noun that takes an s.
std::string counted(int64_t count, std::string_view noun);

/// The known word nearest to `word` by edit distance (case, - and _ do not count), or else one that begins with it, or with something one
/// edit away up to a _ (`encoder_self` for `encodr`); empty if none is near enough to be meant.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

/// ". Did you mean "sparsemax"?", or nothing if no known word is near: the end of an error message.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

/// The language of a code, in lower case: `zh` of `zh-Hans`, `zh_CN` and `ZH`, `sr` of `sr@latin`.
std::string language_of(const std::string& code);

/// The end of an error message about a language code that does not begin with one to three letters, or that is a country's (cn, jp): what
/// to write instead. Empty if the code is fine or empty.
std::string trouble_of_language_code(const std::string& code);

/// The end of an error message about a joiner (the mark, such as @@, at the end of a piece whose word goes on) that contains white space.
/// Empty if the joiner is fine or empty.
std::string trouble_of_joiner(const std::string& joiner);

}  // namespace lacuna

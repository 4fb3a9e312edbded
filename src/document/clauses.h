#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "document/span.h"

namespace lacuna::document {

/// What a text takes of a model: the number of its pieces.
using Measure = std::function<int64_t(std::string_view text)>;

/// Cuts a sentence of a text into parts that measure at most `most` each, without white space around them: behind marks of clauses, where
/// that is not enough at spaces, and else between characters, but never within one of `whole`, which are in order. A part that cannot be
/// cut may measure more.
std::vector<Span> cut_sentence(std::string_view text, Span sentence, int64_t most, const Measure& measure, const std::vector<Span>& whole);

}  // namespace lacuna::document

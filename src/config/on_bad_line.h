#pragma once

#include <cstdint>
#include <string>

#include "base/line_reader.h"
#include "config/options.h"

namespace lacuna {

/// Does with a line that cannot be taken what was asked for: throws its error, whose message then ends with `remedy`, or warns that it is
/// passed over.
void pass_over(const LineError& error, OnBadLine bad_lines, const std::string& remedy = kHowToSkip);

/// Reads the next line that can be taken. Those before it are passed over and counted, or the first of them is thrown; see pass_over().
/// Returns false at the end.
bool next_good_line(LineReader& reader, std::string& line, OnBadLine bad_lines, int64_t& passed_over,
                    const std::string& remedy = kHowToSkip);

/// Says why none of a text's lines is left: "none of 2 lines could be taken"; of those that could be, what all are, as `unfit` has it:
/// "all are blank", "1 of 2 lines could not be taken, and all others are blank".
std::string why_none_is_left(int64_t bad_lines, int64_t lines, const std::string& unfit);

}  // namespace lacuna

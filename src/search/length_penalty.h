#pragma once

#include <cmath>
#include <cstdint>

#include "config/options.h"

namespace lacuna {

/// Finished hypotheses are compared by log_prob / length_penalty(n), where n counts the tokens with eos:
///   pow   n^a              (Marian, fairseq, CTranslate2, Sockeye)
///   gnmt  ((5 + n) / 6)^a  (Wu et al. 2016, arXiv:1609.08144, eq. 14; JoeyNMT, THUMT)
///   none  1
/// The penalty never falls as n grows, and log-probabilities only fall: no continuation of a hypothesis scores more
/// than its log_prob / length_penalty(length limit), the bound by which beam search stops.
inline double length_penalty(const TranslateOptions& options, int64_t n) {
  const double length = static_cast<double>(n);
  switch (options.length_penalty_type) {
    case LengthPenalty::kPow:
      return std::pow(length, options.length_penalty);
    case LengthPenalty::kGnmt:
      return std::pow((5 + length) / 6, options.length_penalty);
    case LengthPenalty::kNone:
      break;
  }
  return 1;
}

}  // namespace lacuna

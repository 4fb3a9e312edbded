#include "attention/norms/norm.h"
#include "attention/registry.h"

namespace lacuna {
namespace {

/// A heading, and below it each entry's name, what is said of it, and its options.
template <class Entries, class Remark>
std::string section(const std::string& heading, const Entries& entries, Remark remark) {
  std::string text = heading + "\n";
  for (const auto* entry : entries) text += std::string("  ") + entry->name + remark(*entry) + "\n" + entry->help();
  return text;
}

std::string remark_on_type(const types::TypeEntry& type) {
  const std::string paper = std::string(type.info.paper).empty() ? "" : std::string("  ") + type.info.paper, norm = type.info.default_norm;
  if (type.takes_mask) return paper + "  (base: the type, with its options, whose weights it calibrates; default softmax)";
  return norm == "none" ? paper : paper + "  (norm " + norm + ", unless another is named)";
}

}  // namespace

std::string attention_help() {
  const auto nothing = [](const auto& /*entry*/) { return ""; };
  return section(
             "Under model.attention, for all or for each of default, encoder_self, decoder_self, cross (and there for each of default,\n"
             "layers.0, layers.1, ...), a type's name or {type, its options, pattern, norm}. Types:",
             types::all_types(), remark_on_type) +
         section("Patterns, one for all heads or {heads: [one for each]}; a name or {type, its options}:", patterns::all_patterns(),
                 nothing) +
         section("Norms over the concatenated heads; a name or {type, its options}:", norms::all_norms(), nothing);
}

}  // namespace lacuna

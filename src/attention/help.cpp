#include "attention/norms/norm.h"
#include "attention/registry.h"

namespace lacuna {
namespace {

/// Returns a heading, and below it each entry's name, a remark on it, and its options.
template <class Entries, class Remark>
std::string section(const std::string& heading, const Entries& entries, Remark remark) {
  std::string text = heading + "\n";
  for (const auto* entry : entries) {
    text.append("  ").append(entry->name).append(remark(*entry)).append("\n");
    text += help_lines(entry->help(), "    ");
  }
  return text;
}

std::string remark_on_type(const types::TypeEntry& type) {
  const std::string paper = std::string(type.info.paper).empty() ? "" : std::string("  ") + type.info.paper, norm = type.info.default_norm;
  return norm == "none" ? paper : paper + "  (norm " + norm + ", unless another is named)";
}

std::string layered_section() {
  const LayeredTypeHelp help = layered_type_help();
  std::string remark = help.remark;
  std::erase(remark, '`');
  return "  " + help.name + "  " + help.paper + "  (" + remark + ")\n" + help_lines(help.options, "    ");
}

}  // namespace

std::string attention_help() {
  const auto nothing = [](const auto& /*entry*/) { return ""; };
  return section(
             "Under model.attention, for all or for each of default, encoder_self, decoder_self, cross (and there for each of default,\n"
             "layers.0, layers.1, ...), a type's name or {type, its options, pattern, norm}. Types:",
             types::all_types(), remark_on_type) +
         layered_section() +
         section("Patterns, one for all heads or {heads: [one for each]}; a name or {type, its options}:", patterns::all_patterns(),
                 nothing) +
         section("Norms over the concatenated heads; a name or {type, its options}:", norms::all_norms(), nothing);
}

}  // namespace lacuna

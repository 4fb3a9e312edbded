#include "exchange/model_card.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

bool is_part_of_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '+';
}

}  // namespace

bool is_license_identifier(const std::string& text) {
  return std::all_of(text.begin(), text.end(), is_part_of_identifier);
}

void require_terms(const ModelTerms& terms) {
  if (!is_license_identifier(terms.license))
    throw UsageError("--license is \"" + terms.license + "\"; expected an identifier such as apache-2.0, cc-by-4.0 or other");
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
  if (first_invalid_utf8(terms.attribution) || std::any_of(terms.attribution.begin(), terms.attribution.end(), is_control))
    throw UsageError("--attribution holds what is no text in one line; expected such as \"trained by NAME on CORPUS\"");
}

std::string model_card(const OutgoingModel& model, const ModelTerms& terms, const std::string& use) {
  const std::string &src = model.options.data.src_lang, &tgt = model.options.data.tgt_lang;
  const std::string& license = terms.license.empty() ? model.info.origin.license : terms.license;  // an import keeps its own
  std::string card = "---\n";
  if (!src.empty() && !tgt.empty()) card += fmt::format("language:\n- {}\n- {}\n", json_text(src), json_text(tgt));
  card += fmt::format("license: {}\n", license.empty() ? "unknown" : license);
  card += "pipeline_tag: translation\ntags:\n- translation\n- lacuna\n---\n\n";
  card += src.empty() || tgt.empty() ? "# A translation model\n\n" : fmt::format("# Translation from {} to {}\n\n", src, tgt);
  card += fmt::format("Trained with Lacuna for {} updates and exported by Lacuna {}.\n\n", model.info.step, LACUNA_VERSION);
  card += license.empty() ? "License: not stated; ask whoever gave you this model.\n" : fmt::format("License: {}.\n", license);
  if (!terms.attribution.empty()) card += fmt::format("Attribution: {}\n", terms.attribution);
  return card + "\n" + use;
}

}  // namespace lacuna

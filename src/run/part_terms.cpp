#include "run/part_terms.h"

#include "base/content_hash.h"
#include "base/error.h"
#include "config/read_options.h"
#include "model/precision.h"
#include "model/transformer.h"
#include "parts/input_digest.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

ordered_json common_terms(const char* verb, const std::vector<LoadedModel>& models, Precision precision, OnBadLine bad_lines) {
  ordered_json terms = {{"verb", verb}, {"version", LACUNA_VERSION}};
  terms["models"] = ordered_json::array();
  terms["model.attention"] = ordered_json::array();
  for (const LoadedModel& loaded : models) {
    terms["models"].push_back(loaded.hash);
    terms["model.attention"].push_back(loaded.options.model.attention.to_line());
  }
  const at::Device device = models.front().model->device();
  terms["device"] = device.is_cpu() ? "cpu" : "cuda";
  terms["precision"] = name_of(translating_precision(precision, device));
  terms["on_error"] = bad_lines == OnBadLine::kSkip ? "skip" : "stop";
  return terms;
}

const char* name_of_level(AlignmentLevel level) {
  if (level == AlignmentLevel::kNone) return "none";
  return level == AlignmentLevel::kWord ? "word" : "subword";
}

}  // namespace

ordered_json translation_terms(const std::vector<LoadedModel>& models, const TranslatorSettings& settings, const TextTranslation& how,
                               const std::string& input, const std::string& terms_file) {
  ordered_json terms = common_terms("translate", models, settings.options.precision, how.bad_lines);
  const ConfigNode options = write_options(settings.options);
  for (const auto& [key, value] : options.entries())
    if (key != "batch_tokens" && key != "precision" && key != "shortlist") terms["translate." + key] = value.to_line();
  const std::string& shortlist = settings.options.shortlist;
  terms["translate.shortlist"] = shortlist.empty() ? "" : digest_of(shortlist).xxh3_128;
  if (settings.options.sampling != Sampling::kNone) terms["seed"] = settings.seed;
  terms["prefix"] = how.prefix;
  terms["terms"] = terms_file.empty() ? "" : digest_of(terms_file).xxh3_128;
  if (how.splitting) terms["split"] = how.splitting->splitter.language();
  terms["alignment"] = name_of_level(settings.alignment);
  terms["alignment_layer"] = settings.alignment_layer;
  terms["alignment_head"] = settings.alignment_head;
  terms["json"] = how.format.json;
  terms["n_best"] = how.format.n_best;
  terms["scores"] = how.format.scores;
  terms["tokens"] = how.format.tokens;
  if (how.format.json && how.bad_lines == OnBadLine::kSkip) terms["input_name"] = input;
  return terms;
}

ordered_json scoring_terms(const std::vector<LoadedModel>& models, const ScoreRequest& asked, Precision precision) {
  ordered_json terms = common_terms("score", models, precision, asked.bad_lines);
  terms["tokens"] = asked.tokens;
  terms["json"] = asked.json;
  terms["normalize"] = asked.normalize;
  terms["guard"] = asked.guard;
  if (asked.guard) terms["translate.guard_limits"] = write_options(models.front().options.translate.guard_limits).to_line();
  if (asked.json && asked.bad_lines == OnBadLine::kSkip) terms["input_names"] = {asked.src, asked.tgt};
  return terms;
}

std::vector<JobInput> job_inputs(const std::vector<std::string>& files) {
  std::vector<JobInput> inputs;
  inputs.reserve(files.size());
  for (const std::string& file : files) inputs.push_back({file, sampled_digest_of(file)});
  return inputs;
}

}  // namespace lacuna

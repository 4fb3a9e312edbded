#include "exchange/export.h"

#include "attention/registry.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

ExchangeFormat format_of(const std::string& name) {
  if (name == "hf") return ExchangeFormat::kHuggingFace;
  return name == "argos" ? ExchangeFormat::kArgos : ExchangeFormat::kCtranslate2;
}

int run_export(const std::vector<std::string>& arguments) {
  CommandLine app("Writes a model for another program: transformers, CTranslate2, Argos Translate and LibreTranslate.", "lacuna export");
  ExportRequest request;
  CommonFlags common;
  std::string format, precision = "fp32";
  flags::add_model(app, request.model)->required();
  app.add_option("--to", format,
                 "hf: a folder of Hugging Face transformers; ctranslate2: a folder of CTranslate2; argos: a package of Argos Translate and "
                 "LibreTranslate")
      ->required()
      ->check(CLI::IsMember({"hf", "ctranslate2", "argos"}));
  app.add_option("-o,--output", request.output, "Folder to be made; for argos, a file NAME.argosmodel")->type_name("PATH")->required();
  app.add_flag("--overwrite", request.replaces, "Replace an earlier export that stands there");
  app.add_option("--precision", precision, "Weights in the files; int8, of ctranslate2 and argos: bytes with a scale for each row")
      ->check(CLI::IsMember({"fp32", "int8"}));
  app.add_option("--src-lang", request.src_lang, "Code of the source language, where the model's data.src_lang is empty or another")
      ->type_name("CODE");
  app.add_option("--tgt-lang", request.tgt_lang, "Code of the target language")->type_name("CODE");
  app.add_option("--license", request.terms.license, "License that the model card names: apache-2.0, cc-by-4.0, ...")->type_name("ID");
  app.add_option("--attribution", request.terms.attribution, "Who made the model, and of what, for the model card");
  app.set_help_all_flag("--help-options",
                        "Print every key under `translate` and `model.attention` with its default, range and meaning, and end");
  common.declare_threads_and_log(app);
  app.footer(
      "Every key under `translate` is a flag too, for the search that transformers does by default: --translate.beam_size 4.\n"
      "Other programs have softmax attention alone: --model.attention softmax exports another model as if it had it. What a format\n"
      "cannot hold is refused by its key; the manual's page \"Models out and in\" has a table.");
  app.allow_extras();
  if (!app.read(arguments, search_options_help() + attention_help())) return 0;
  common.apply_log_level();
  use_threads(common.threads);
  request.overrides = overrides_of(app);
  request.format = format_of(format);
  request.precision = precision == "int8" ? Precision::kInt8 : Precision::kFp32;
  export_model(request);
  log_info("exported {} as {}", request.model, request.output);
  return 0;
}

}  // namespace

Verb export_verb() {
  return {"export", "a model for transformers, CTranslate2, Argos Translate or LibreTranslate", run_export};
}

}  // namespace lacuna

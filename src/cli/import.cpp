#include "exchange/import.h"

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

int run_import(const std::vector<std::string>& arguments) {
  CommandLine app("Makes a checkpoint of a model of transformers or Marian, to translate with it or to train it on.", "lacuna import");
  ImportRequest request;
  CommonFlags common;
  std::string positions = "transformers";
  app.add_option(
         "place", request.place,
         "Folder of Hugging Face transformers (MarianMT as of Opus-MT, M2M100, NLLB, SMaLL-100; what `lacuna export --to hf` makes), "
         "folder of a Marian model, or its .npz file")
      ->required();
  app.add_option("-o,--output", request.output, "Folder of the checkpoint; an old one is replaced")->type_name("PATH")->required();
  app.add_option("--src-tag", request.src_tag,
                 "Token that every source without one begins with: eng_Latn, __en__, or >>deu<< for a Marian model of several targets")
      ->type_name("TOKEN");
  app.add_option("--tgt-tag", request.tgt_tag, "Token that every translation begins with, and does not show: deu_Latn, __de__")
      ->type_name("TOKEN");
  app.add_option("--positions", positions,
                 "Sinusoids of a MarianMT folder: as transformers computes them, or as Marian, where such models were trained")
      ->check(CLI::IsMember({"transformers", "marian"}));
  app.add_option("--src-lang", request.src_lang, "Code of the source language, where the model does not say it")->type_name("CODE");
  app.add_option("--tgt-lang", request.tgt_lang, "Code of the target language")->type_name("CODE");
  app.add_option("--license", request.license, "License of the model, where its folder does not say it: apache-2.0, cc-by-4.0, ...")
      ->type_name("ID");
  common.declare_threads_and_log(app);
  app.footer("The manual's page \"Models out and in\" says what is read, and what is refused.");
  if (!app.read(arguments)) return 0;
  common.apply_log_level();
  use_threads(common.threads);
  request.positions = positions == "marian" ? PositionsAs::kMarian : PositionsAs::kTransformers;
  flags::require_new_or_checkpoint(request.output, {});
  import_model(request);
  log_info("imported {} as {}", request.place, request.output);
  return 0;
}

}  // namespace

Verb import_verb() {
  return {"import", "a model of transformers (Opus-MT, M2M100, NLLB) or Marian, as a checkpoint", run_import};
}

}  // namespace lacuna

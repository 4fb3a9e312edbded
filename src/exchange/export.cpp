#include "exchange/export.h"

#include <filesystem>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/spelling.h"
#include "exchange/argos.h"
#include "exchange/ctranslate2.h"
#include "exchange/file_sink.h"
#include "exchange/huggingface.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr char kPackageEnding[] = ".argosmodel";

/// Returns the file that an export of this format has for certain, with which a folder may be replaced.
const char* weights_file(ExchangeFormat format) {
  return format == ExchangeFormat::kHuggingFace ? "model.safetensors" : "model.bin";
}

void require_free_folder(const ExportRequest& request) {
  const fs::path path(request.output), link = path.has_filename() ? path : path.parent_path();
  std::error_code error;
  if (fs::is_symlink(link, error)) throw UsageError("-o is " + request.output + ", which is a link; name another folder");
  if (!fs::exists(path, error)) return;
  if (!request.replaces) throw UsageError("-o is " + request.output + ", which is there; name a folder to be made, or give --overwrite");
  if (!fs::exists(path / weights_file(request.format), error) || is_checkpoint(request.output))
    throw UsageError("-o is " + request.output + ", which --overwrite does not replace, as it is no earlier export: it holds no " +
                     weights_file(request.format) + ", or is a checkpoint; name another folder");
}

void require_free_file(const ExportRequest& request) {
  if (!request.output.ends_with(kPackageEnding))
    throw UsageError("-o is " + request.output + "; a package of Argos Translate is a file: name it so that it ends in " + kPackageEnding);
  std::error_code error;
  if (!fs::exists(request.output, error)) return;
  if (!fs::is_regular_file(request.output, error)) throw UsageError("-o is " + request.output + ", which is no file; name another");
  if (!request.replaces) throw UsageError("-o is " + request.output + ", which is there; name a file to be made, or give --overwrite");
}

void write_package(const ExportRequest& request, const OutgoingModel& model) {
  require_ctranslate2_has(model);
  require_argos_has(model);
  make_parent_of(request.output);
  FileReplacement file(request.output);
  ZipSink archive(file.writer());
  write_argos(archive, model, request.precision, request.terms);
  archive.finish();
  file.finish();
}

void write_folder(const ExportRequest& request, OutgoingModel model) {
  request.format == ExchangeFormat::kHuggingFace ? require_huggingface_has(model) : require_ctranslate2_has(model);
  make_parent_of(request.output);
  StagedFolder folder{fs::path(request.output)};
  FolderSink files(folder.path());
  if (request.format == ExchangeFormat::kHuggingFace) {
    write_huggingface(files, std::move(model), request.terms);
  } else {
    files.add("README.md", model_card(model, request.terms, use_of_ctranslate2(model)));
    if (model.vocabularies.src->is_sentencepiece()) add_sentencepiece_models(files, model.vocabularies);
    write_ctranslate2(files, model, request.precision);
  }
  folder.commit();
}

}  // namespace

void export_model(const ExportRequest& request) {
  require_terms(request.terms);
  const bool is_package = request.format == ExchangeFormat::kArgos;
  if (request.format == ExchangeFormat::kHuggingFace && request.precision != Precision::kFp32)
    throw UsageError(
        "--precision is int8; weights for transformers are fp32, and it rounds them as it loads them. --to ctranslate2 has int8");
  is_package ? require_free_file(request) : require_free_folder(request);
  for (const auto& [flag, code] : {std::pair("--src-lang", &request.src_lang), {"--tgt-lang", &request.tgt_lang}})
    if (const std::string trouble = language_code_error(*code); !trouble.empty())
      throw UsageError(std::string(flag).append(" is \"").append(*code).append("\"").append(trouble));
  OutgoingModel model = load_outgoing(request.model, request.overrides);
  if (!request.src_lang.empty()) model.options.data.src_lang = request.src_lang;
  if (!request.tgt_lang.empty()) model.options.data.tgt_lang = request.tgt_lang;
  is_package ? write_package(request, model) : write_folder(request, std::move(model));
}

}  // namespace lacuna

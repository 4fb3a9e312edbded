#include "exchange/import.h"

#include <filesystem>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/not_finite.h"
#include "config/load.h"
#include "exchange/huggingface_import.h"
#include "exchange/incoming_files.h"
#include "exchange/marian_import.h"
#include "exchange/model_card.h"
#include "model/parameter_path.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Returns the license that the head of a model card names, as the Hugging Face Hub reads it; empty if it names none.
std::string license_of_card(IncomingFiles& files) {
  constexpr uint64_t kMostCard = 4 << 20;
  if (!files.has("README.md")) return "";
  const std::string card = files.text("README.md", kMostCard), key = "\nlicense:";
  if (!card.starts_with("---")) return "";
  const std::string head = card.substr(0, card.find("\n---", 3));
  const size_t at = head.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = head.find_first_not_of(" \t\r\n-\"'", at + key.size());
  if (begin == std::string::npos) return "";
  const std::string license = head.substr(begin, head.find_first_of(" \t\r\n\"'", begin) - begin);
  return is_license_identifier(license) ? license : "";
}

ModelOrigin origin_of(const IncomingModel& model, IncomingFiles& files, const ImportRequest& request) {
  ModelOrigin origin;
  origin.license = request.license.empty() ? license_of_card(files) : request.license;
  origin.place = fs::absolute(request.place).lexically_normal().string();
  origin.kind = model.kind;
  origin.sha256 = files.sha256();
  return origin;
}

IncomingModel read_model(IncomingFiles& files, const std::string& npz, const ImportRequest& request) {
  if (!npz.empty()) return read_marian(files, npz, request);
  if (files.has("config.json")) {
    if (request.positions == PositionsAs::kMarian) log_info("positions are those of Marian, not those that transformers computes");
    return read_huggingface(files, request);
  }
  return read_marian(files, "", request);
}

void require_flags(const ImportRequest& request) {
  require_terms({request.license, ""});
  for (const auto& [flag, code] : {std::pair("--src-lang", &request.src_lang), {"--tgt-lang", &request.tgt_lang}})
    if (const std::string trouble = language_code_error(*code); !trouble.empty())
      throw UsageError(std::string(flag).append(" is \"").append(*code).append("\"").append(trouble));
}

}  // namespace

void import_model(const ImportRequest& request) {
  require_flags(request);
  std::error_code error;
  const fs::path place(request.place);
  if (!fs::exists(place, error)) throw DataError(request.place + " does not exist; expected a folder with a model, or Marian's .npz file");
  const bool is_file = fs::is_regular_file(place, error);
  if (is_file && place.extension() != ".npz")
    throw DataError(request.place + " is a file; expected a folder with a model, or a model of Marian, whose name ends in .npz");
  IncomingFiles files(is_file ? (place.has_parent_path() ? place.parent_path() : fs::path(".")) : place);
  IncomingModel model = read_model(files, is_file ? place.filename().string() : "", request);
  require_finite(model.weights, request.place);
  const Options options = model.options.read();
  const VocabularySizes sizes = sizes_of(model.vocabularies);
  require_room_for(options.model, sizes, model.weights, request.place);
  const UndrawnWeights no_initialization;
  const Transformer fitting(options.model, sizes, options.seed_value());
  require_weights_of(fitting, model.weights, request.place);
  CheckpointContents contents;
  contents.info.origin = origin_of(model, files, request);
  contents.weights = std::move(model.weights);
  contents.config_yaml = to_yaml(options);
  contents.vocabularies = model.vocabularies;
  make_parent_of(request.output);
  save_checkpoint(request.output, contents);
  if (contents.info.origin.license.empty())
    log_warning("{} does not say under what license the model is; --license states one", request.place);
}

}  // namespace lacuna

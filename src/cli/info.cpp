#include <spdlog/fmt/fmt.h>

#include <iostream>
#include <map>

#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "config/load.h"

namespace lacuna {
namespace {

/// Returns the part of the model that a parameter belongs to: "encoder.layers.0" for "encoder.layers.0.self_attention.qkv.weight".
std::string part_of(const std::string& parameter) {
  size_t dots = parameter.find(".layers.") == std::string::npos ? 1 : 3, at = 0;
  while (dots > 0 && (at = parameter.find('.', at)) != std::string::npos && --dots > 0) ++at;
  return parameter.substr(0, at);
}

void print_model(const std::string& path) {
  const LoadedModel loaded = load_model(path);
  std::map<std::string, int64_t> parts;
  int64_t total = 0;
  for (const auto& parameter : loaded.model->named_parameters()) {
    parts[part_of(parameter.key())] += parameter.value().numel();
    total += parameter.value().numel();
  }
  std::cout << fmt::format("step             {}\n", loaded.info.step);
  for (const auto& [name, score] : loaded.info.scores) std::cout << fmt::format("{:<16} {:.4f}\n", printable(name), score);
  if (!loaded.info.averaged_from.empty())
    std::cout << fmt::format("averaged from    {}\n", counted(std::ssize(loaded.info.averaged_from), "checkpoint"));
  if (const ModelOrigin& origin = loaded.info.origin; !origin.kind.empty()) {
    std::cout << fmt::format("imported from    {} ({})\n", printable(origin.place), printable(origin.kind));
    std::cout << fmt::format("license          {}\n", origin.license.empty() ? "not stated" : printable(origin.license));
  }
  const std::string& rounded = loaded.info.quantized_to;
  const std::string kind = !rounded.empty() ? "rounded to " + rounded : loaded.info.uses_ema ? "moving average" : "as trained";
  std::cout << fmt::format(
      "weights          {}, {:.1f} MiB\n", kind,
      static_cast<double>(read_while_replaced(path, [&] { return bytes_of_weights(resolve_checkpoint(path)); })) / (1 << 20));
  std::cout << fmt::format("vocabulary       {} source, {} target pieces{}\n", loaded.vocabularies.src->size(),
                           loaded.vocabularies.tgt->size(), loaded.vocabularies.shared() ? ", shared" : "");
  std::cout << fmt::format("parameters       {}\n", total);
  for (const auto& [part, count] : parts) std::cout << fmt::format("  {:<30} {:>12}\n", part, count);
  std::cout << "\n" << to_yaml(loaded.options);
}

int run_info(const std::vector<std::string>& arguments) {
  CommandLine app("What was built and what it runs on; with -m, what a model is.", "lacuna info");
  std::string model;
  flags::add_model(app, model, ". Its parameters by part, steps, scores and configuration are printed");
  if (!app.read(arguments)) return 0;
  if (model.empty())
    std::cout << build_text() << "\n";
  else
    print_model(model);
  return 0;
}

}  // namespace

Verb info_verb() {
  return {"info", "the machine and the build; or what a model is", run_info};
}

}  // namespace lacuna

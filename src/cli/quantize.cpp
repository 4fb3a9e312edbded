#include "checkpoint/quantize.h"

#include <spdlog/fmt/fmt.h>

#include "base/durable_files.h"
#include "base/log.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

double mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

int run_quantize(const std::vector<std::string>& arguments) {
  CommandLine app("A model with weights in a byte or two each, for translating: the same translations as with --precision.",
                  "lacuna quantize");
  std::string model, output, precision = "int8";
  flags::add_model(app, model)->required();
  app.add_option("-o,--output", output, "Folder of the rounded model; an old one is replaced")->required();
  app.add_option("--precision", precision, "int8: bytes with a scale for each row, a quarter of the size; bf16: half the size")
      ->check(CLI::IsMember({"int8", "bf16"}));
  app.footer(
      "Weights of linear layers and embeddings are rounded; biases, norms and positions are not. The folder is a checkpoint for every verb "
      "that loads a model; training and averaging need the weights it was made of.");
  if (!app.read(arguments)) return 0;
  std::string input;
  uint64_t before = 0;
  const CheckpointContents rounded = read_while_replaced(model, [&] {
    input = resolve_checkpoint(model);
    flags::require_new_or_checkpoint(output, {model, input});
    before = bytes_of_weights(input);
    return quantized_checkpoint(input, precision == "int8" ? Precision::kInt8 : Precision::kBf16);
  });
  make_parent_of(output);
  save_checkpoint(output, rounded);
  const uint64_t after = bytes_of_weights(output);
  log_info("rounded {} to {} in {}: weights of {:.1f} MiB, {:.1f} % of {:.1f}", input, precision, output, mebibytes(after),
           100 * static_cast<double>(after) / static_cast<double>(before), mebibytes(before));
  return 0;
}

}  // namespace

Verb quantize_verb() {
  return {"quantize", "a model with int8 or bf16 weights, for translating", run_quantize};
}

}  // namespace lacuna

#include <ATen/Parallel.h>

#include "ablation/variant.h"
#include "attention/cpu/run.h"
#include "attention/registry.h"
#include "base/log.h"
#include "bench/attention_op.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "config/yaml.h"
#include "speed/timing.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kEveryType[] =
    "softmax,{type: topk, k: 8},{type: topk, ratio: 4, floor: 8},rela,sparsemax,entmax15,{type: entmax, alpha: 1.5},"
    "{type: entmax, alpha: 1.3},{type: entmax, alpha: learned},span";
constexpr char kSparseTypes[] = "topk,rela,sparsemax,entmax15,{type: entmax, alpha: 1.3},{type: entmax, alpha: learned}";

struct AttentionBenchFlags {
  std::string types, patterns;
  std::vector<int64_t> lengths = {32, 128, 512, 2048};
  std::vector<std::string> dtypes = {"fp32"};
  AttentionShape shape;
  int64_t rounds = 7;
  double zeros = 0;
  bool queued = false, json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option(
        "--types", types,
        "Attention types, names or maps as in YAML, such as topk,{type: entmax, alpha: learned} (default: all that are row maps; "
        "with --zeros " +
            std::string(kSparseTypes) + ")");
    app.add_option("--patterns", patterns,
                   "Patterns that each type is timed with (default: full,{type: local, window: 32}; with --zeros full)");
    app.add_option("--lengths", lengths, "Tokens of a sentence")->delimiter(',')->check(whole_number_from(1));
    app.add_option("--dtype", dtypes, "fp32, bf16 or fp32,bf16")->delimiter(',')->check(CLI::IsMember({"fp32", "bf16"}));
    app.add_option("--sentences", shape.sentences, "Sentences; 8 of them with 8 heads are 64 rows")->check(whole_number_from(1));
    app.add_option("--heads", shape.heads, "Heads")->check(whole_number_from(1));
    app.add_option("--d-head", shape.d_head, "Features of a head")->check(whole_number_from(1));
    app.add_flag("--causal", shape.is_causal, "A query sees itself and what is before it");
    app.add_option(
           "--zeros", zeros,
           "Share of weights that are zero, 0.9 say: scores are scaled (of ReLA shifted) until a type gives so many, top-k takes the k "
           "for it, and softmax is timed on the same scores. Default: scores of standard normal q and k")
        ->check(real_number_between(0.01, 0.99));
    app.add_option("--rounds", rounds, "Times each is measured, one after the other in turn; the median counts")
        ->check(whole_number_from(1));
    app.add_flag("--queued", queued,
                 "Time a GPU by events around many calls in its queue, without waiting for each: what the operation costs within a model. "
                 "Without it, each call counts until its gradients are there");
    app.add_flag("--json", json, "Print one JSON object");
    common.declare_runtime(app);
    app.footer(
        "Forward and backward of the operation alone, from q, k and v to their gradients; of a type with a norm over the heads (ReLA) with "
        "its norm. softmax_ms is our softmax over all keys on the same scores, aten_ms LibTorch's scaled_dot_product_attention.");
  }
};

std::string types_text(const AttentionBenchFlags& flags) {
  if (!flags.types.empty()) return flags.types;
  if (flags.zeros > 0) return kSparseTypes;
  return kEveryType;
}

std::string patterns_text(const AttentionBenchFlags& flags) {
  if (!flags.patterns.empty()) return flags.patterns;
  return flags.zeros > 0 ? "full" : "full,{type: local, window: 32}";
}

/// A list in YAML, without its brackets.
std::vector<ConfigNode> patterns_of(const std::string& text) {
  ConfigNode list = parse_yaml_value("[" + text + "]", "command line (--patterns)");
  list.set_path("--patterns");
  if (list.items().empty()) list.fail("expected patterns with commas between them: full,{type: local, window: 32}");
  return list.items();
}

/// Throws UsageError if the operation alone cannot be timed with this type of --types, or not with such `zeros`.
void require_timeable(const std::string& name, const AttentionType& type, double zeros) {
  if (!type.is_row_map())
    throw UsageError("--types: " + name + " takes the scores of a mask model, which the operation alone does not have; leave it out, and " +
                     "time it in a model: lacuna bench train --compare '{cross: " + type.name() + "}'");
  if (zeros > 0 && !can_give_zeros(type))
    throw UsageError("--zeros: " + name + " gives no zero weights; leave it out of --types (softmax is timed beside every type)");
}

/// A type with a pattern, and their names.
struct TypeWithPattern {
  std::string type, pattern;
  ConfigNode attention;
};

/// Every type with every pattern; a type that says its own pattern with that one.
std::vector<TypeWithPattern> entries_of(const AttentionBenchFlags& flags) {
  const std::vector<ConfigNode> patterns = patterns_of(patterns_text(flags));
  std::vector<TypeWithPattern> entries;
  for (const Variant& type : parse_variants(types_text(flags), "--types", {}, types::known_types())) {
    ConfigNode node = attention_of(type, "--types");
    require_timeable(type.name, *attention_choice(node, flags.shape.heads).type, flags.zeros);
    if (node.is_scalar()) node = ConfigNode::map({{"type", node}}, node.place());
    if (node.find("pattern") != nullptr) {
      entries.push_back({type.name, "its own", node});
      continue;
    }
    for (const ConfigNode& pattern : patterns) {
      node.set("pattern", pattern);
      attention_choice(node, flags.shape.heads);  // for its errors, before long work
      entries.push_back({type.name, name_of_choice(pattern), node});
    }
  }
  return entries;
}

Json line_of(const TypeWithPattern& entry, const AttentionShape& shape, const Timed& measured, const Timed& softmax, const Timed& aten) {
  return {{"length", shape.length},     {"dtype", shape.dtype == at::kBFloat16 ? "bf16" : "fp32"},
          {"type", entry.type},         {"pattern", entry.pattern},
          {"ms", measured.median_ms()}, {"softmax_ms", softmax.median_ms()},
          {"aten_ms", aten.median_ms()}};
}

/// How the operation is timed: `rounds` times, each call until its gradients are there, or queued on a GPU.
struct HowToTime {
  int64_t rounds;
  bool is_queued;
  at::Device device;

  template <class Op>
  Timed op(std::shared_ptr<Op> op) const {
    return {[op = std::move(op), *this] {
      op->run();
      if (!is_queued) wait_for(device);
    }};
  }
  void in_turn(std::vector<Timed>& all) const { time_in_turn(all, rounds, is_queued ? device : at::kCPU); }
};

std::shared_ptr<AttentionOp> softmax_op(const AttentionShape& shape, const AttentionInputs& inputs) {
  return std::make_shared<AttentionOp>(attention_choice(ConfigNode::scalar("softmax"), shape.heads), shape, inputs);
}

/// Every entry on the same scores.
std::vector<Json> times_on_same_scores(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, const HowToTime& timing) {
  const AttentionInputs inputs = random_inputs(shape, 1);
  std::vector<Timed> all = {timing.op(softmax_op(shape, inputs)), timing.op(std::make_shared<AtenSoftmaxOp>(shape, inputs))};
  for (const TypeWithPattern& entry : entries)
    all.push_back(timing.op(std::make_shared<AttentionOp>(attention_choice(entry.attention, shape.heads), shape, inputs)));
  timing.in_turn(all);
  std::vector<Json> lines;
  for (size_t i = 0; i < entries.size(); ++i) lines.push_back(line_of(entries[i], shape, all[i + 2], all[0], all[1]));
  return lines;
}

/// An entry on scores of its own, with softmax beside it.
Json times_on_sparse_scores(const TypeWithPattern& entry, const AttentionShape& shape, double zeros, const HowToTime& timing) {
  const SparseScores scores = sparse_scores(entry.attention, shape, random_inputs(shape, 1), zeros);
  const AttentionChoice choice = attention_choice(scores.attention, shape.heads);
  std::vector<Timed> all = {timing.op(softmax_op(shape, scores.inputs)), timing.op(std::make_shared<AtenSoftmaxOp>(shape, scores.inputs)),
                            timing.op(std::make_shared<AttentionOp>(choice, shape, scores.inputs))};
  timing.in_turn(all);
  Json line = line_of(entry, shape, all[2], all[0], all[1]);
  line["zero_share"] = scores.zero_share;
  return line;
}

/// True if the attention core takes tensors of the shape's dtype on its device.
bool is_fused(const AttentionShape& shape) {
  AttentionShape least = shape;
  least.sentences = least.length = 1;
  return softmax_op(least, random_inputs(least, 1))->has_fused_core();
}

/// Returns a line for each entry with the median times of the entry, of softmax and of ATen's softmax on the same scores.
/// `zeros` is the share of weights to be zero, on scores made for the entry; 0 = standard normal q and k.
std::vector<Json> attention_times(const std::vector<TypeWithPattern>& entries, const AttentionShape& shape, double zeros,
                                  const HowToTime& timing) {
  if (zeros <= 0) return times_on_same_scores(entries, shape, timing);
  std::vector<Json> lines;
  lines.reserve(entries.size());
  for (const TypeWithPattern& entry : entries) lines.push_back(times_on_sparse_scores(entry, shape, zeros, timing));
  return lines;
}

Json measure(const AttentionBenchFlags& flags, const std::vector<TypeWithPattern>& entries) {
  Json lines = Json::array();
  for (const std::string& dtype : flags.dtypes) {
    for (const int64_t length : flags.lengths) {
      AttentionShape shape = flags.shape;
      shape.length = length;
      shape.dtype = dtype == "bf16" ? at::kBFloat16 : at::kFloat;
      if (!is_fused(shape)) {
        log_warning("the attention core takes no {} tensors here: they are left out", dtype);
        break;
      }
      const HowToTime timing = {flags.rounds, flags.queued, shape.device};
      for (Json& line : attention_times(entries, shape, flags.zeros, timing)) lines.push_back(std::move(line));
    }
  }
  return lines;
}

void print_attention_lines(const Json& lines) {
  std::vector<std::vector<std::string>> rows = {{"length", "dtype", "type", "pattern", "ms", "/ softmax", "/ ATen softmax", "zeros"}};
  for (const Json& line : lines) {
    const double ms = line["ms"].get<double>();
    rows.push_back({line["length"].dump(), line["dtype"].get<std::string>(), line["type"].get<std::string>(),
                    line["pattern"].get<std::string>(), short_number(ms), short_number(ms / line["softmax_ms"].get<double>()),
                    short_number(ms / line["aten_ms"].get<double>()),
                    line.contains("zero_share") ? short_number(line["zero_share"].get<double>()) : ""});
  }
  print_table(rows);
}

int bench_attention(const std::vector<std::string>& arguments) {
  CommandLine app("The attention operation alone: every type beside softmax and LibTorch's own.", "lacuna-bench attention");
  AttentionBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  const std::string device = flags.common.prepared_device();
  flags.common.apply_log_level();
  flags.shape.device = at::Device(device);
  if (flags.queued && flags.shape.device.is_cpu())
    throw UsageError("--queued is of a GPU's queue, and the device is \"" + device + "\"; leave it out, or use --device cuda");
  Json report = {{"device", device},
                 {"threads", at::get_num_threads()},
                 {"instruction_set", name_of(attention_target())},
                 {"sentences", flags.shape.sentences},
                 {"heads", flags.shape.heads},
                 {"d_head", flags.shape.d_head},
                 {"causal", flags.shape.is_causal},
                 {"queued", flags.queued},
                 {"rounds", flags.rounds}};
  if (flags.zeros > 0) report["zeros"] = flags.zeros;
  report["lines"] = measure(flags, entries_of(flags));
  print_report(report, flags.json);
  if (!flags.json) print_attention_lines(report["lines"]);
  return 0;
}

}  // namespace

Verb attention_verb() {
  return {"attention", "the attention operation alone, each type beside softmax and LibTorch's own", bench_attention};
}

}  // namespace lacuna

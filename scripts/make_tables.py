#!/usr/bin/env python3
"""Writes the tables of the manual from the records in docs/results/*.jsonl.

    scripts/make_tables.py           writes them into README.md and the pages of docs/
    scripts/make_tables.py --check   writes nothing; exit status 1 where a page differs

A page has a table between the lines `<!-- table: NAME -->` and `<!-- end -->`. NAME is a function of this file.
docs/results/README.md describes the records.
"""
import argparse
import difflib
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REGION = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
PROCESSORS = ["Intel AMX", "AMD Zen 5", "AMD Zen 4", "AMD Zen 3"]
GPU = "NVIDIA H200"
TYPES = {"softmax": "softmax (control)", "topk": "top-k, k = 8", "rela": "ReLA, gated RMSNorm", "sparsemax": "sparsemax",
         "entmax15": "1.5-entmax", "entmax, alpha 1.3": "entmax, α = 1.3", "entmax, learned alpha": "entmax, learned α",
         "span": "adaptive span", "local pattern, window 8": "softmax, local window 8", "calibrated (cross)": "calibrated (cross)"}
SITES = ("encoder_self", "decoder_self", "cross")


def records(file, **wanted):
    """Records of a file whose fields have the wanted values (None: the field is absent), the oldest first."""
    lines = (ROOT / "docs/results" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [record for record in map(json.loads, lines) if all(record.get(key) == value for key, value in wanted.items())]
    return sorted(found, key=lambda record: record.get("date", ""))


def latest(file, **wanted):
    """The newest such record, or an empty one. A record of a busy machine counts only if there is no other."""
    found = records(file, **wanted)
    return ([record for record in found if not record.get("busy")] or found or [{}])[-1]


def table(header, rows):
    """Markdown. Short cells and dates stay on one line, by no-break spaces and hyphens."""
    def kept_together(cell):
        if DATE.fullmatch(cell):
            return cell.replace("-", "\u2011")
        return cell.replace(" ", "\u00a0") if len(cell) < 16 else cell

    kept = [list(map(kept_together, row)) for row in rows]
    lines = [header, ["---"] * len(header), *kept]
    return "".join("| " + " | ".join(cell or " " for cell in line) + " |\n" for line in lines)


def whole(value, unit=""):
    return "" if value is None else f"{value:,.0f}{unit}"


def ratio(value):
    return "" if value is None else f"{value:.2f}"


def signed(value, digits=2):
    return f"{value:+.{digits}f}".replace("-", "−")


def divided(one, other):
    return one / other if one and other else None


# ---- Training

def fastest_peer(record):
    return record.get("fastest_peer") or max(record.get("nn_transformer", 0), record.get("marianmt", 0)) or None


def training():
    rows = []
    for processor in [*PROCESSORS, GPU]:
        for model in ("small", "base"):
            for precision in ("bf16", "fp32", "bf16x3"):
                record = latest("training", processor=processor, model=model, precision=precision, system=None)
                if not record:
                    continue
                peers = record.get("peak_mib") or latest("training", processor=processor, model=model, precision=precision,
                                                         busy=True).get("peak_mib", {})
                least = min((peers[peer] for peer in ("nn_transformer", "marianmt") if peer in peers), default=None)
                rows.append([processor, model, precision, whole(record.get("lacuna")), whole(fastest_peer(record)), ratio(record["ratio"]),
                             whole(peers.get("lacuna")), whole(least), record["date"]])
    return table(["processor", "model", "precision", "Lacuna, tokens/s", "fastest peer, tokens/s", "ratio", "peak memory, MiB",
                  "a peer's, MiB", "date"], rows)


def time_to_score():
    rows = []
    for processor in PROCESSORS:
        record = latest("training", processor=processor, task="time to 34 BLEU")
        if record:
            peer = record.get("marianmt_bf16")
            rows.append([processor, record["precision"], ", ".join(map(str, record["seconds"])),
                         f"{peer['bleu']} BLEU after {peer['seconds']} s" if peer else "not measured", record["date"]])
    return table(["processor", "precision", "seconds to 34 BLEU (a figure for each seed)", "MarianMT in bf16 at the same work", "date"], rows)


# ---- Translating

def translations(processor, model, system, precision):
    """The fastest setting's record with tokens a second, of the newest complete series."""
    found = records("translating", processor=processor, model=model, system=system, precision=precision, repeat=None)
    return max(found, key=lambda record: record.get("tokens_per_second", 0), default={})


def translating():
    rows = []
    for model in ("small", "base"):
        for processor in PROCESSORS:
            for precision in ("fp32", "bf16", "int8"):
                ours = translations(processor, model, "Lacuna", precision)
                if not ours:
                    continue
                peer = translations(processor, model, "CTranslate2 4.8.5", precision)
                rows.append([processor, model, precision, whole(ours["tokens_per_second"]), whole(peer.get("tokens_per_second")),
                             ratio(divided(ours["tokens_per_second"], peer.get("tokens_per_second"))), str(ours.get("sentences_per_second", "")),
                             str(peer.get("sentences_per_second", "")),
                             ratio(divided(ours.get("sentences_per_second"), peer.get("sentences_per_second"))),
                             whole(ours.get("peak_mib")), whole(peer.get("peak_mib")), ours["date"]])
    return table(["processor", "model", "precision", "whole file: Lacuna, tokens/s", "CTranslate2", "ratio",
                  "one by one: Lacuna, sentences/s", "CTranslate2", "ratio", "peak memory, MiB", "CTranslate2's", "date"], rows)


def beside_ctranslate2():
    """The newest record of each processor, model and beam, one sentence after the other."""
    found = records("translating", task="one sentence after the other, beside CTranslate2")
    return {(record["processor"], record["model"], record["beam"]): record for record in found}.values()


def one_by_one():
    rows = []
    for record in beside_ctranslate2():
        speed = record["sentences_per_second"]
        row = [record["processor"], record["model"], str(record["beam"])]
        for precision in ("fp32", "int8"):
            ours, peer = speed[f"lacuna {precision}"], speed[f"ctranslate2 {precision}"]
            row += [str(ours), str(peer), ratio(divided(ours, peer))]
        rows.append([*row, record["date"]])
    return table(["processor", "model", "beam", "Lacuna, fp32", "CTranslate2, float32", "ratio", "Lacuna, int8", "CTranslate2, int8", "ratio", "date"],
                 rows)


def weights_of(model):
    """Millions of weights that a step reads, and that a sentence reads once: the encoder's, and those of cross-attention's keys and values."""
    d, d_ff, layers, vocabulary = {"small": (256, 1024, 3, 8000), "base": (512, 2048, 6, 8000)}[model]
    of_layers = layers * (6 * d * d + 2 * d * d_ff) / 1e6  # either way: cross-attention has a third of its own
    return of_layers + vocabulary * d / 1e6, of_layers


def weights_read():
    """What one thread can do at most that reads every weight once a step, in int8."""
    rows = []
    for record in beside_ctranslate2():
        reading = latest("translating", task="weights read by one thread", processor=record["processor"])
        if not reading:
            continue
        of_step, once = weights_of(record["model"])
        of_sentence = reading["steps"][record["model"]] * of_step + once
        most, speed = 1000 * reading["gigabytes_per_second"] / of_sentence, record["sentences_per_second"]
        rows.append([record["processor"], record["model"], str(record["beam"]), f"{of_step:.1f}", whole(of_sentence), f"{most:.0f}",
                     *(whole(100 * speed[f"{system} int8"] / most, " %") for system in ("lacuna", "ctranslate2")),
                     ratio(most / speed["ctranslate2 int8"])])
    return table(["processor", "model", "beam", "weights of a step, MB", "of a sentence, MB", "at most, sentences/s", "Lacuna's share", "CTranslate2's",
                  "at most, over CTranslate2"], rows)


def service_memory():
    rows = []
    for model in ("small", "base"):
        peak = latest("translating", task="memory, one sentence after the other", model=model)["peak_mib"]
        rows.append([model, *(whole(peak[key]) for key in ("lacuna fp32", "lacuna int8", "ctranslate2 fp32", "ctranslate2 int8"))])
    return table(["model", "Lacuna, fp32", "Lacuna, int8", "CTranslate2, float32", "CTranslate2, int8"], rows)


def start_up():
    rows = []
    for processor in PROCESSORS:
        record = latest("translating", task="start-up", processor=processor)
        if record:
            seconds = record["seconds"]
            rows.append([processor, ratio(seconds["fp32"]), ratio(seconds["int8"]), ratio(seconds["libraries"]), record["date"]])
    return table(["processor", "fp32", "int8", "of which LibTorch's libraries", "date"], rows)


def service():
    """What was measured of the service, with what is wanted."""
    parts = ("equal", "throughput", "latency", "libretranslate", "overload", "idle", "hostile", "leaving", "drain", "memory")
    rows = [[part, figure, f"{value:,}" if isinstance(value, (int, float)) else value, str(wanted), record["date"]]
            for part in parts for record in [latest("service", part=part)] if record for figure, value, wanted in record["figures"]]
    return table(["part", "figure", "measured", "wanted", "date"], rows)


def distilled():
    rows = [[f"{record['role']}, `{record['model']}`", f"{record['million_parameters']} million", f"{record['bleu']}", whole(record["sentences_per_second"]),
             record["date"]] for record in records("translating", task="distillation")]
    return table(["Multi30k, German to English, int8", "parameters", "BLEU, test2016", "sentences/s, two cores", "date"], rows)


def speed():
    """Lacuna's speed over the fastest peer's: one row a task, one column a processor."""
    def trained(model, precision):
        return [ratio(latest("training", processor=processor, model=model, precision=precision, system=None).get("ratio"))
                for processor in PROCESSORS]

    def translated(model, precision, what):
        return [ratio(divided(translations(processor, model, "Lacuna", precision).get(what),
                              translations(processor, model, "CTranslate2 4.8.5", precision).get(what))) for processor in PROCESSORS]

    rows = [["training, small model, bf16", *trained("small", "bf16")],
            ["training, small model, fp32", *trained("small", "fp32")],
            ["training, base model, bf16", *trained("base", "bf16")],
            ["training, base model, fp32", *trained("base", "fp32")],
            ["translating a file, int8", *translated("small", "int8", "tokens_per_second")],
            ["translating a file, fp32", *translated("small", "fp32", "tokens_per_second")],
            ["one sentence after the other, int8", *translated("small", "int8", "sentences_per_second")]]
    return table(["Lacuna's speed over the fastest peer's", *PROCESSORS], rows)


# ---- Attention

def costs(task, attention, precision):
    """The time over softmax's, on each processor: its lowest and highest."""
    found = []
    for processor in PROCESSORS:
        measured = [record["over_softmax"][attention] for record in records("attention", task=task, processor=processor, precision=precision)
                    if attention in record["over_softmax"]]
        found += measured[-1:]
    return f"{min(found):.2f} to {max(found):.2f}" if found and min(found) != max(found) else ratio(found[0] if found else None)


def attention_cost():
    rows = []
    for attention, name in TYPES.items():
        rows.append([name, costs("update", attention, "bf16"), costs("translation", attention, "fp32")])
    return table(["attention", "an update, over softmax's time", "a translation, over softmax's time"], rows)


# What a user writes, the name in attention.jsonl, the variant in multi30k.jsonl, and the softmax of as many epochs.
CHOICES = [("softmax", "softmax", "softmax", "softmax"),
           ("{type: entmax, alpha: learned}", "entmax, learned alpha", "entmax-learned", "softmax"),
           ("topk", "topk", "topk-8", "softmax"),
           ("entmax15", "entmax15", "entmax15", "softmax"),
           ("rela", "rela", "rela-g", "softmax"),
           ("span (self-attention)", "span", "span-6", "softmax-6"),
           ("sparsemax", "sparsemax", "sparsemax-6", "softmax-6"),
           ("calibrated (cross)", "calibrated (cross)", "calibrated-gate", "softmax")]


def attention_choice():
    rows = []
    for name, attention, variant, against in CHOICES:
        runs = records("multi30k", variant=variant)
        base = {run["seed"]: run["bleu"] for run in records("multi30k", variant=against)}
        difference = statistics.mean(run["bleu"] - base[run["seed"]] for run in runs)
        zero = [statistics.mean(run["sparsity"][site] for run in runs) for site in SITES]
        kind, _, where = name.partition(" (")
        rows.append([f"`{kind}`" + (f" ({where}" if where else ""), costs("update", attention, "bf16"), costs("translation", attention, "fp32"),
                     "–" if variant == against else signed(difference, 1), f"{runs[0]['epochs']:.0f}",
                     ", ".join(f"{100 * share:.0f}" for share in zero)])
    return table(["type", "time of an update (softmax: 1)", "time of a translation", "BLEU, difference to softmax", "after epochs",
                  "zero weights, %: encoder, decoder, cross"], rows)


def operation():
    rows = []
    names = ("softmax", "topk", "rela", "sparsemax", "entmax15", "entmax, learned alpha")
    for processor in [*PROCESSORS, GPU]:
        for precision in ("fp32", "bf16"):
            for keys in (32, 128, 512, 2048):
                record = latest("operation", processor=processor, precision=precision, keys=keys, task=None)
                if record:
                    rows.append([processor, precision, whole(keys), *(ratio(record["over_eager"].get(name)) for name in names),
                                 ratio(record["softmax_over_fused"])])
    return table(["processor", "precision", "keys", *names, "softmax, over LibTorch's fused"], rows)


def zeros():
    rows = []
    for processor in PROCESSORS:
        record = latest("operation", processor=processor, task="zeros, 2,048 keys")
        if record:
            half = lambda value: ratio(statistics.mean(value) if isinstance(value, list) else value)
            dense, sparse = record["over_softmax"], record["over_softmax_at_90_percent_zeros"]
            rows.append([processor, *(half(dense.get(name)) for name in ("topk", "sparsemax", "entmax15", "local pattern, window 32")),
                         *(half(sparse.get(name)) for name in ("rela", "topk", "entmax15"))])
    return table(["processor", "topk", "sparsemax", "entmax15", "local window 32", "90 % zeros: rela", "90 %: topk", "90 %: entmax15"], rows)


# ---- Ablations

def spread(values, digits):
    text = f"{statistics.mean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {statistics.stdev(values):.{digits}f}"


def multi30k():
    rows = []
    for variant in dict.fromkeys(record["variant"] for record in records("multi30k")):
        runs = records("multi30k", variant=variant)
        compared = [run["comparison"] for run in runs if run["comparison"]]
        against = compared[0]["against"] if compared else ""
        difference = f"{signed(statistics.mean(c['difference'] for c in compared))} ({', '.join('%.3f' % c['p_value'] for c in compared)})" \
            if compared else "–"
        rows.append([variant, spread([run["bleu"] for run in runs], 2), difference, against, spread([run["chrf"] for run in runs], 2),
                     spread([run["valid_loss"] for run in runs], 3),
                     ", ".join(f"{100 * statistics.mean(run['sparsity'][site] for run in runs):.0f}" for site in SITES),
                     whole(runs[0]["parameters"]), whole(max(run["peak_mebibytes"] for run in runs)), f"{runs[0]['epochs']:.0f}",
                     ", ".join(str(run["seed"]) for run in runs)])
    return table(["attention", "BLEU", "difference (p)", "to", "chrF", "validation loss", "zeros, %: encoder, decoder, cross", "parameters",
                  "memory, MiB", "epochs", "seeds"], rows)


def bundled():
    def both(value, digits):
        return f"{value['mean']:.{digits}f} ± {value['deviation']:.{digits}f}" if isinstance(value, dict) else f"{value:.{digits}f}"

    rows = []
    for record in records("bundled"):
        difference = f"{signed(record['difference'])} ({', '.join('%.3f' % p for p in record['p_values'])})" if "difference" in record else "–"
        rows.append([record["attention"], both(record["bleu"], 2), difference, record.get("against", ""), both(record["chrf"], 2),
                     both(record["valid_loss"], 3), ", ".join(str(record["zeros_percent"][site]) for site in SITES), whole(record["parameters"]),
                     whole(record["peak_mib"]), whole(record["updates"]), ", ".join(map(str, record["seeds"]))])
    return table(["attention", "BLEU", "difference (p)", "to", "chrF", "validation loss", "zeros, %: encoder, decoder, cross", "parameters",
                  "memory, MiB", "updates", "seeds"], rows)


# ---- Several ranks

def ranks_speed():
    rows = [[record["processor"], record["model"], record["precision"], whole(record["tokens_per_second"]), ratio(record["of_unconnected"]),
             ratio(record["of_two_threads"]), record["date"]] for record in records("training", task="two ranks")]
    return table(["processor", "model", "precision", "tokens/s", "of two unconnected processes", "of one process with two threads", "date"], rows)


def ranks_network():
    names = ("ms_alone", "ms_update", "ms_update_without_overlap")
    rows = [[record["processor"], record["model"], whole(record["batch_tokens"]), *(whole(record[name]) for name in names), ratio(record["overlap_gain"]),
             f"{record['bytes_of_ideal']:.3f}", record["date"]] for record in records("training", task="two ranks at 1 Gbit/s")]
    return table(["processor", "model", "tokens of a batch", "one rank alone, ms an update", "two", "two, exchange after the backward pass", "gain by overlap",
                  "bytes sent, of the ideal", "date"], rows)


def ranks_validation():
    rows = [[record["processor"], record["model"], record["precision"], f"{record['seconds_of_one']:.1f}", f"{record['seconds_of_two']:.1f}",
             ratio(record["of_one"]), record["date"]] for record in records("training", task="validation by two ranks")]
    return table(["processor", "model", "precision", "one process, s", "two ranks, s", "two over one", "date"], rows)

# ---- Analysis

def alignment():
    def error(value):
        return f"{value['aer']:.1f} ({value['interval'][0]:.1f} to {value['interval'][1]:.1f})"

    names = ("best_head_normal", "best_head_shifted", "mean_normal", "mean_shifted")
    rows = [[record["attention"], *(error(record[name]) for name in names)] for record in records("analysis", task="alignment")]
    return table(["attention", "best head, normal", "best head, shifted", "mean of a layer's heads, normal", "mean, shifted"], rows)


def filters():
    rows = [[record["ranked_by"], *(ratio(record.get("auc", {}).get(kind)) for kind in ("mismatched", "truncated", "untranslated")),
             ratio(record.get("bleu"))] for record in records("analysis", task="corpus filter")]
    return table(["ranked by", "AUC: mismatched", "AUC: truncated", "AUC: untranslated", "BLEU after training on the best 80 %"], rows)


def guard():
    measures = ("length_ratio", "loop", "unattended", "token_log_prob", "risk")
    rows = [[record["pairs"], *(ratio(record.get("auc", {}).get(measure)) for measure in measures), f"{record['flagged_percent']:.1f}"]
            for record in records("analysis", task="guard")]
    return table(["pairs", *(f"AUC: {measure.replace('_', ' ')}" for measure in measures), "flagged, %"], rows)


def fuzz():
    rows = []
    for target in dict.fromkeys(record["target"] for record in records("fuzz")):
        found = records("fuzz", target=target)
        rows.append([f"`{target}`", whole(sum(record["seconds"] for record in found) / 60), whole(sum(record["executions"] for record in found)),
                     whole(max(record["edges"] for record in found)), whole(max(record["memory_mib"] for record in found)),
                     whole(sum(record["findings"] for record in found))])
    return table(["target", "minutes of a processor", "inputs", "edges covered", "most memory, MiB", "findings"], rows)


def filled(text):
    """The page with every table made anew."""
    return REGION.sub(lambda match: match[1] + globals()[match[2]]() + match[3], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where a page differs")
    options = parser.parse_args()
    status = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new == old:
            continue
        if options.check:
            print(f"{page.relative_to(ROOT)}: tables differ from docs/results; run scripts/make_tables.py")
            print("\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), "page", "records", lineterm="", n=0)))
            status = 1
        else:
            page.write_text(new, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())

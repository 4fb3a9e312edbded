#!/usr/bin/env python3
"""What scripts/gpu_day.sh compares and prints: gpu_day.py machine|tests|losses|same|lines|tables ...; each prints one JSON object, tables prints Markdown."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

MOST_LOSS_DIFFERENCE = {"fp32": 0.005, "bf16": 0.03}  # of a loss, relative, in any update; the mean may differ by a third of it
MOST_LINES_DIFFERENT = 0.02  # by rounding, of translations in fp32


def machine(lacuna, device):
    """Which card, driver and program."""
    facts = {"device": device, "cores": os.cpu_count(), "lacuna": subprocess.run([lacuna, "info"], capture_output=True, text=True, check=True).stdout}
    if device != "cpu":
        command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
        facts["card"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return facts, True


def counted(pattern, text):
    return sum(int(number) for number in re.findall(pattern, text))


def tests(program, cases, device, shards="1"):
    """Runs the cases of a test program in so many processes at once. On a GPU none of them may be skipped, and there must be some."""

    def shard(index):
        variables = {**os.environ, "GTEST_TOTAL_SHARDS": shards, "GTEST_SHARD_INDEX": str(index)}
        ended = subprocess.run([program, f"--gtest_filter={cases}", "--gtest_brief=1"], capture_output=True, text=True, env=variables, check=False)
        if ended.returncode != 0:
            print(ended.stdout[-3000:] + ended.stderr[-1000:], file=sys.stderr)
        return ended

    with concurrent.futures.ThreadPoolExecutor(int(shards)) as pool:
        ended = list(pool.map(shard, range(int(shards))))
    text = "".join(one.stdout for one in ended)
    report = {"passed": counted(r"\[  PASSED  \] (\d+) test", text), "skipped": counted(r"\[  SKIPPED \] (\d+) test", text),
              "failed": re.findall(r"(?m)^\[  FAILED  \] (\S+) \(", text)}
    is_run = report["passed"] > 0 and (device == "cpu" or report["skipped"] == 0)
    return report, is_run and all(one.returncode == 0 for one in ended)


def train_losses(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return [record["loss"] for record in map(json.loads, file) if record.get("kind") == "train"]


def compared_losses(expected, found, most):
    differences = [abs(b - a) / abs(a) for a, b in zip(expected, found)]
    report = {"updates": len(found), "largest_difference": max(differences), "mean_difference": sum(differences) / len(differences),
              "first": [expected[0], found[0]], "last": [expected[-1], found[-1]]}
    return report, len(expected) == len(found) and max(differences) <= most and report["mean_difference"] <= most / 3


def losses(on_cpu, on_device, in_bf16):
    """The losses of the same updates on the CPU and on the device, in fp32 and in bf16."""
    expected = train_losses(on_cpu)
    reports = {name: compared_losses(expected, train_losses(run), MOST_LOSS_DIFFERENCE[name]) for name, run in (("fp32", on_device), ("bf16", in_bf16))}
    return {name: report for name, (report, _) in reports.items()}, all(is_near for _, is_near in reports.values())


def same(first, second):
    """Whether two checkpoints have the same bits."""
    names = ("model.safetensors", "trainer.safetensors")
    equal = {name: pathlib.Path(first, name).read_bytes() == pathlib.Path(second, name).read_bytes() for name in names}
    return equal, all(equal.values())


def lines(first, second):
    """How many lines of two files differ."""
    texts = [pathlib.Path(name).read_text(encoding="utf-8").splitlines() for name in (first, second)]
    different = sum(a != b for a, b in zip(*texts))
    return {"lines": len(texts[0]), "different": different}, len(texts[0]) == len(texts[1]) and different <= MOST_LINES_DIFFERENT * len(texts[0])


# --- tables ---


class Results:
    """The JSON of the steps that ended well."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        steps = (self.folder / "steps.tsv").read_text(encoding="utf-8").splitlines()
        self.steps = [dict(zip(("name", "code", "seconds", "text"), line.split("\t"))) for line in steps]
        self.of = {step["name"]: self.read(step["name"]) for step in self.steps if step["code"] == "0"}

    def read(self, name):
        text = (self.folder / f"{name}.json").read_text(encoding="utf-8").strip()
        try:
            return json.loads(text if text.startswith("{\n") else text.splitlines()[-1])
        except (IndexError, ValueError):
            return None  # a test, which prints no JSON

    def number(self, name, key):
        return (self.of.get(name) or {}).get(key)


def cell(value, digits=3):
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def ratio(ours, theirs, higher_is_better=True):
    if not ours or not theirs:
        return "–"
    return f"{ours / theirs if higher_is_better else theirs / ours:.2f}"


def print_table(title, head, rows):
    if not rows:
        return
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


def print_training(results):
    rows, speed = [], "tgt_tokens_per_second"
    for name in results.of:
        parts = name.split(".")
        if parts[0] != "train" or len(parts) != 3:
            continue
        ours, profile = results.number(name, speed), results.number(name, "profile") or {}
        peers = [results.number(f"{name}.{peer}", speed) for peer in ("ragged", "marian", "compiled")]
        rows.append([parts[1], parts[2], cell(ours), *(f"{cell(peer)} ({ratio(ours, peer)})" for peer in peers), cell(profile.get("gpu_busy_share")),
                     cell(profile.get("launches")), cell(profile.get("synchronizations")), cell(profile.get("allocations"))])
    print_table("Training, target tokens/s; in parentheses how many times as fast Lacuna is",
                ["model", "batch", "Lacuna", "ragged PyTorch", "MarianMT", "MarianMT, compiled", "GPU busy", "launches", "synchronizations", "allocations"], rows)


def print_profiles(results):
    for name, report in results.of.items():
        profile = (report or {}).get("profile") if isinstance(report, dict) else None
        if profile:
            print_table(f"Where the time goes: {name}, GPU busy {profile['gpu_busy_ms']:.3g} ms", ["part", "ms", "calls"],
                        [[part["name"], cell(part["ms"]), cell(part["calls"])] for part in profile["parts"] if part["calls"]])


def print_attention(results):
    for causal in ("full", "causal"):
        ours, peers = results.of.get(f"attention.{causal}"), results.of.get(f"attention.{causal}.peers") or {"lines": []}
        if not ours:
            continue
        theirs = {(line["dtype"], line["length"], line["type"], line["pattern"]): line["ms"] for line in peers["lines"]}
        rows = []
        for line in ours["lines"]:
            where = line["dtype"], line["length"]
            eager = theirs.get((*where, line["type"], line["pattern"]))
            splash = [theirs.get((*where, f"adasplash-v{version}", "full")) if line["type"] == "entmax15" else None for version in (1, 2)]
            rows.append([*where, line["type"], line["pattern"], cell(line["ms"]), *(ratio(line["ms"], other, False) for other in (eager, line["aten_ms"], *splash))])
        print_table(f"Attention, {causal}, forward and backward, ms; how many times as fast Lacuna is as the others",
                    ["dtype", "keys", "type", "pattern", "Lacuna, ms", "eager PyTorch", "ATen's fused softmax", "AdaSplash", "AdaSplash-2"], rows)


def print_translating(results):
    speed, rows = "output_tokens_per_second", []
    peer = results.number("translate.peer", speed)
    for precision, name in (("fp32", "translate"), ("bf16", "translate.bf16")):
        ours = results.number(name, speed)
        rows.append([f"beam 5, all lines, {precision}", cell(ours), f"{cell(peer)} ({ratio(ours, peer)})"])
    alone = results.number("translate.alone", "sentences_per_second")
    rows.append(["one sentence after the other, ms each", cell(1e3 / alone if alone else None), "–"])
    print_table("Translating, output tokens/s", ["", "Lacuna", "transformers, generate()"], rows)


def tables(folder):
    results = Results(folder)
    facts = results.of.get("machine") or {}
    print(f"{facts.get('card', 'the CPU: sizes are as small as can be, and figures say nothing')}, {facts.get('cores')} cores")
    print_table("Steps", ["step", "exit code", "seconds", ""], [step.values() for step in results.steps])
    for table in (print_training, print_attention, print_translating, print_profiles):
        table(results)
    with open(results.folder / "gpu_day.json", "w", encoding="utf-8") as file:
        json.dump({"steps": results.steps, "results": results.of}, file, indent=1)


def main():
    commands = {command.__name__: command for command in (machine, tests, losses, same, lines, tables)}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(f"gpu_day.py: expected one of {', '.join(commands)}; scripts/gpu_day.sh calls it")
    if sys.argv[1] == "tables":
        return tables(*sys.argv[2:])
    report, is_good = commands[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(report))
    if not is_good:
        sys.exit(f"{sys.argv[1]}: {json.dumps(report)}")


if __name__ == "__main__":
    main()

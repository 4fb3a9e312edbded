#!/usr/bin/env python3
"""Measures training by two ranks of one thread: beside two processes that know nothing of each other, beside one process with two threads, and
on a slow network.

  scripts/bench_ranks.py                         # small and base, five rounds, medians
  scripts/bench_ranks.py --model base --network  # at 1 Gbit/s between two namespaces (root): what overlap gains, how many bytes are sent
  scripts/bench_ranks.py --validation            # one validation by two ranks, and by one process with one thread

Prints a table, and with --json a record for docs/results/training.jsonl a line. The corpus is Multi30k's (scripts/get_multi30k.sh). The machine
should do nothing else.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/ranks"))
import namespaces  # noqa: E402
import ranks  # noqa: E402

SHAPES = {"small": [], "base": ["--model.preset", "base"]}


def words_of(options, model, *more):
    return ["-c", str(options.config), *SHAPES[model], "--train.batch_tokens", str(options.batch_tokens), "--train.precision", options.precision, "--folder",
            str(options.folder), "--json", *more]


def report_of(command):
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, "GOMP_SPINCOUNT": "1000"})
    return json.loads(ended.stdout)


def beside_others(options, model):
    """Rounds of two ranks and one process with two threads, in turn."""
    program, steps = str(options.program), str(options.steps)
    of_alone, of_threads, together, threads = [], [], [], []
    for _ in range(options.rounds):
        two = report_of([program, "bench", "ranks", "-n", "2", *words_of(options, model, "--threads", "1", "--steps", steps)])
        one = report_of([program, "bench", "train", *words_of(options, model, "--threads", "2", "--steps", steps)])
        together.append(2e3 * two["tgt_tokens_per_update"] / two["ms_update"])
        threads.append(one["tgt_tokens_per_second"])
        of_alone.append(two["efficiency"])
        of_threads.append(together[-1] / threads[-1])
        print(f"  {model}: {together[-1]:.0f} tokens/s, {of_alone[-1]:.3f} of two unconnected processes, {of_threads[-1]:.3f} of two threads "
              f"({threads[-1]:.0f})", file=sys.stderr, flush=True)
    return {"task": "two ranks", "model": model, "precision": two["precision"], "batch_tokens": options.batch_tokens,
            "rounds": options.rounds,
            "tokens_per_second": round(statistics.median(together)), "two_threads": round(statistics.median(threads)),
            "of_unconnected": round(statistics.median(of_alone), 3), "of_two_threads": round(statistics.median(of_threads), 3)}


def on_network(options, model):
    """Two ranks on a network of 1 Gbit/s; the bytes are those between two runs of different lengths."""
    found = []
    with namespaces.Bridge(2, "1gbit") as network:
        sent = []
        for steps in (options.steps, 2 * options.steps):
            before = network.bytes_sent(1)
            words = ["bench", "ranks", *words_of(options, model, "--threads", "1", "--steps", str(steps))]
            with ranks.Ranks(str(options.program), words, 2, **network.places()) as together:
                codes = together.wait(3600)
                assert codes == [0, 0], together.texts()
                text = together.text(0)
            found.append(json.loads(text[text.index("{\n"):]))
            sent.append(network.bytes_sent(1) - before)
    updates = 2 * options.steps  # of each of the two kinds of updates with an exchange, one more for each step
    report = found[-1]
    of_ideal = (sent[1] - sent[0]) / updates / (1e6 * report["megabytes_sent_per_update"])
    return {"task": "two ranks at 1 Gbit/s", "model": model, "precision": report["precision"],
            "batch_tokens": options.batch_tokens, "ms_alone": round(report["ms_alone"], 1),
            "ms_update": round(report["ms_update"], 1), "ms_update_without_overlap": round(report["ms_update_without_overlap"], 1),
            "overlap_gain": round(report["overlap_gain"], 3), "bytes_of_ideal": round(of_ideal, 4),
            "gigabits_per_second": round(report["gigabits_per_second"], 3)}


def seconds_of_validation(options, model, size, folder):
    """The time of the validation after the first update, by the times of the records before and after it."""
    shutil.rmtree(folder, ignore_errors=True)
    words = ["train", "-c", str(options.config), *SHAPES[model], "--run", folder, "--threads", "1", "--train.batch_tokens", str(options.batch_tokens),
             "--train.precision", options.precision, "--train.max_steps", "1", "--train.log_every", "1", "--train.valid_every", "1",
             "--translate.max_length", "100", "--train.valid_beam_size", "5", "--train.patience", "0", "--data.test", "[]", "--quiet"]
    subprocess.run([str(options.program), "launch", "-n", str(size), "--", *words] if size > 1 else [str(options.program), *words], check=True,
                   env={**os.environ, "GOMP_SPINCOUNT": "1000"})
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        times = {record["kind"]: datetime.datetime.fromisoformat(record["time"]) for record in map(json.loads, file)}
    return (times["valid"] - times["train"]).total_seconds()


def of_validation(options, model):
    seconds = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for size, found in seconds.items():
                found.append(seconds_of_validation(options, model, size, os.path.join(folder, "run")))
    one, two = (statistics.median(found) for found in seconds.values())
    return {"task": "validation by two ranks", "model": model, "precision": options.precision, "rounds": options.rounds,
            "seconds_of_one": round(one, 2), "seconds_of_two": round(two, 2), "of_one": round(two / one, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/cpu/lacuna")
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "configs/multi30k_de_en/small.yaml")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs/bench_ranks")
    parser.add_argument("--model", choices=SHAPES, action="append")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--network", action="store_true", help="at 1 Gbit/s between two namespaces; needs root")
    parser.add_argument("--validation", action="store_true", help="one validation, by two ranks and by one process")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.program = options.program.resolve()
    if options.network and (problem := namespaces.why_not()):
        sys.exit(f"scripts/bench_ranks.py: --network: {problem}")
    for model in options.model or SHAPES:
        measure = on_network if options.network else of_validation if options.validation else beside_others
        record = measure(options, model)
        print(json.dumps(record) if options.json else "\n".join(f"{key:28}{value}" for key, value in record.items()) + "\n", flush=True)


if __name__ == "__main__":
    main()

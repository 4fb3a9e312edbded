#!/usr/bin/env python3
"""Measures training and a service on a busy machine: alone, beside one busy process, and beside one at nice 19.

  scripts/bench_busy.py            # the program as it is, and with libgomp's default of spinning (GOMP_SPINCOUNT=300000)
  scripts/bench_busy.py --setting '' --setting OMP_WAIT_POLICY=passive --rounds 5

Prints a table: target tokens per second of training (lacuna bench train), and the milliseconds that a running `lacuna translate` takes for
a sentence, where the next one is written once the last translation was read. The settings, each a list of environment variables, take
turns in each round; medians count. The machine should do nothing else. By default, both use as many threads as there are CPUs.
"""

import argparse
import json
import os
from pathlib import Path
import statistics
import subprocess
import sys
import time

ROOT = Path(__file__).resolve().parent.parent
BUSY_LOOP = "while True: pass"
CONDITIONS = {"alone": [], "beside one": [0], "beside one at nice 19": [19]}


def main():
    options = parse_arguments()
    prepare(options)
    settings = options.setting or ["", "GOMP_SPINCOUNT=300000"]
    print(f"{'':24}{'environment':28}{'training':>12}{'of alone':>10}{'sentence':>11}{'p95':>9}")
    alone = {}
    for condition in options.condition or CONDITIONS:
        results = {setting: Results() for setting in settings}
        with BusyProcesses(CONDITIONS[condition]):
            for _ in range(options.rounds):
                for setting, result in results.items():
                    environment = {**os.environ, **dict(word.split("=", 1) for word in setting.split())}
                    if not options.no_training:
                        result.speeds.append(training_speed(options, environment))
                    if not options.no_sentences:
                        result.milliseconds += sentence_milliseconds(options, environment)
        for setting, result in results.items():
            speed = statistics.median(result.speeds or [0])
            share = speed / alone.setdefault(setting, speed) if speed else 0
            times = sorted(result.milliseconds or [0])
            print(f"{condition:24}{setting or '-':28}{speed:8.0f} t/s{share:10.2f}{statistics.median(times):8.1f} ms"
                  f"{times[int(0.95 * len(times))]:6.1f} ms", flush=True)


class Results:
    def __init__(self):
        self.speeds = []
        self.milliseconds = []


class BusyProcesses:
    """Processes that compute without end, one for each nice level given, while the block lasts."""

    def __init__(self, nice_levels):
        self.nice_levels = nice_levels

    def __enter__(self):
        self.processes = [subprocess.Popen(["nice", "-n", str(level), sys.executable, "-c", BUSY_LOOP]) for level in self.nice_levels]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def prepare(options):
    """Makes the corpus and a small trained model where there are none."""
    folder = options.folder
    if not (folder / "corpus.json").exists():
        subprocess.run([sys.executable, ROOT / "data/generate.py", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    if not options.no_sentences and not (folder / "run/last").exists():
        subprocess.run([options.program, "train", *configuration(options), "--run", folder / "run", "--train.max_steps", "300",
                        "--train.valid_every", "300", "--quiet"], check=True)


def configuration(options):
    files = json.dumps([{side: str(options.folder / f"train.{language}") for side, language in (("src", "de"), ("tgt", "en"))}])
    valid = files.replace("train.", "valid.")
    return ["-c", ROOT / "configs/bundled/base.yaml", "--data.train", files, "--data.valid", valid, "--model.preset", options.preset]


def training_speed(options, environment):
    command = [options.program, "bench", "train", *configuration(options), "--folder", options.folder / "bench",
               "--steps", str(options.steps), "--json", "--quiet", *options.train_flag]
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["tgt_tokens_per_second"]


def sentence_milliseconds(options, environment):
    sentences = (options.folder / "test.de").read_bytes().splitlines()[:options.sentences + 5]
    with subprocess.Popen([options.program, "translate", "-m", options.folder / "run", "--quiet"], env=environment,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as translator:
        times = []
        for sentence in sentences:
            start = time.perf_counter()
            translator.stdin.write(sentence + b"\n")
            translator.stdin.flush()
            translator.stdout.readline()
            times.append(1000 * (time.perf_counter() - start))
        translator.stdin.close()
    return times[5:]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "build/cpu/lacuna", help="the binary to measure")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs/bench_busy", help="where corpus and model are kept")
    parser.add_argument("--preset", default="tiny", help="model.preset")
    parser.add_argument("--setting", action="append", help="environment variables, NAME=VALUE ...; may be repeated (default: none, and GOMP_SPINCOUNT=300000)")
    parser.add_argument("--condition", action="append", choices=CONDITIONS, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="times each is measured")
    parser.add_argument("--steps", type=int, default=60, help="updates of a training")
    parser.add_argument("--sentences", type=int, default=40, help="sentences of a service")
    parser.add_argument("--train-flag", action="append", default=[], help="a further word for lacuna bench train; may be repeated")
    parser.add_argument("--no-training", action="store_true", help="only the service")
    parser.add_argument("--no-sentences", action="store_true", help="only training")
    return parser.parse_args()


if __name__ == "__main__":
    main()

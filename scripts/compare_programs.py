#!/usr/bin/env python3
"""Compares the speed and memory of two builds of lacuna: the same tasks with each in turn, and the median of the ratios.

  scripts/compare_programs.py OLD/lacuna build/cpu/lacuna -c configs/multi30k_de_en/small.yaml -m runs/multi30k/small -i data/multi30k/test2016.de.gz
  scripts/compare_programs.py OLD/lacuna build/cpu/lacuna -c CONFIG --task train-bf16 --task attention:rela --pairs 9

Tasks: train-bf16 and train-fp32 (updates of the configuration), file-fp32 and file-int8 (a whole text), lines-fp32 and lines-int8 (the same text,
each sentence written once the last translation was read), and attention:TYPE (bf16 updates with that type at every site, or with the types that a
map of sites names). A row of the table, in Markdown, is a task: seconds of a unit of work (an update, a text, a sentence) with OLD and with NEW,
the median of NEW / OLD over the pairs, the least and the greatest ratio, and the ratio of peak memory. The machine should do nothing else.
"""

import argparse
import gzip
import json
from pathlib import Path
import statistics
import subprocess
import tempfile
import time

TYPES = ["softmax", "topk", "rela", "sparsemax", "entmax15", "{type: entmax, alpha: learned}", "{encoder_self: span, decoder_self: span}"]
TASKS = ["train-bf16", "train-fp32", "file-fp32", "file-int8", "lines-fp32", "lines-int8", *(f"attention:{kind}" for kind in TYPES)]


def main():
    options = parse_arguments()
    print("| task | old, s | new, s | new / old | least | greatest | memory |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for task in options.task or TASKS:
            measure(task, options, folder)  # not counted: files into the page cache, the vocabulary into the folder
            pairs = [measure(task, options, folder) for _ in range(options.pairs)]
            old, new = zip(*pairs)
            ratios = [after[0] / before[0] for before, after in pairs]
            memory = statistics.median(after[1] / before[1] for before, after in pairs)
            print(f"| {task} | {median(old):.4f} | {median(new):.4f} | {statistics.median(ratios):.3f} | {min(ratios):.3f} | "
                  f"{max(ratios):.3f} | {memory:.3f} |", flush=True)


def median(results):
    return statistics.median(seconds for seconds, _ in results)


def measure(task, options, folder):
    """(seconds of a unit of work, peak memory in MiB) of the old program and of the new."""
    return [measure_one(task, program, options, folder) for program in (options.old, options.new)]


def measure_one(task, program, options, folder):
    kind, _, detail = task.replace("-", ":", 1).partition(":")
    if kind in ("train", "attention"):
        flags = ["--train.precision", detail] if kind == "train" else ["--train.precision", "bf16", "--model.attention", detail]
        return training(program, flags, options, folder)
    flags = ["--translate.precision", detail]
    return (whole_file if kind == "file" else line_by_line)(program, flags, options)


def training(program, flags, options, folder):
    result = run_json([program, "bench", "train", "-c", options.config, "--folder", folder, "--steps", str(options.steps), *flags])
    return result["ms_per_update"] / 1000, result["peak_mebibytes"]


def whole_file(program, flags, options):
    result = run_json([program, "bench", "translate", "-m", options.model, "-i", options.input, "--limit", str(options.lines), "--rounds", "1", *flags])
    return options.lines / result["sentences_per_second"], result["peak_mebibytes"]


def line_by_line(program, flags, options):
    read = gzip.open if str(options.input).endswith(".gz") else open
    with read(options.input) as file:
        sentences = file.read().splitlines()[:options.lines]
    with subprocess.Popen([program, "translate", "-m", options.model, "--quiet", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as translator:
        for position, sentence in enumerate(sentences):
            if position == 5:  # the first ones warm up
                start = time.perf_counter()
            translator.stdin.write(sentence + b"\n")
            translator.stdin.flush()
            translator.stdout.readline()
        seconds = (time.perf_counter() - start) / (len(sentences) - 5)
        status = Path(f"/proc/{translator.pid}/status").read_text()
        translator.stdin.close()
    return seconds, int(status.split("VmHWM:")[1].split()[0]) / 1024


def run_json(command):
    return json.loads(subprocess.run([*command, "--json", "--quiet"], check=True, stdout=subprocess.PIPE).stdout)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the program to compare with")
    parser.add_argument("new", type=Path, help="the program that is judged")
    parser.add_argument("-c", "--config", required=True, help="configuration of the trainings")
    parser.add_argument("-m", "--model", help="checkpoint or run folder of the translations")
    parser.add_argument("-i", "--input", help="text of the translations, plain or gzip")
    parser.add_argument("--task", action="append", help="only this one; may be repeated (default: all)")
    parser.add_argument("--pairs", type=int, default=9, help="times each program is measured")
    parser.add_argument("--steps", type=int, default=15, help="updates of a training")
    parser.add_argument("--lines", type=int, default=100, help="lines of the text, more than 5")
    options = parser.parse_args()
    if not (options.model and options.input) and any(task.startswith(("file", "lines")) for task in options.task or TASKS):
        parser.error("the tasks file-... and lines-... need --model and --input")
    return options


if __name__ == "__main__":
    main()

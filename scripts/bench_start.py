#!/usr/bin/env python3
"""How long `lacuna translate` takes from its start to the translation of one sentence.

  scripts/bench_start.py [--lacuna build/cpu/lacuna] [--sentence TEXT] [--rounds 15] MODEL [OPTION...]

A model is started as often as there are rounds, after one start that is not counted and leaves its files in the page cache; OPTIONs go to each start
(--translate.max_length 10, for a model that was hardly trained and never ends a sentence). `lacuna --version` in turn with it says what loading
LibTorch's libraries takes. One row in Markdown: seconds, median (least to most), and the length of the translation. A start that fails or translates
nothing is an error.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import time


def start(command, sentence):
    """(seconds, what it printed)"""
    begin = time.perf_counter()
    try:
        ended = subprocess.run(command, input=sentence + "\n", capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(f"bench_start.py: --lacuna is {command[0]}: {error.strerror}; expected the program, which scripts/build.sh makes")
    seconds = time.perf_counter() - begin
    if ended.returncode != 0 or not ended.stdout.strip():
        sys.exit(f"bench_start.py: {' '.join(command)} ended with {ended.returncode} and printed {ended.stdout.strip()!r}: {ended.stderr.strip()}")
    return seconds, ended.stdout


def shown(seconds):
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", default=str(root / "build/cpu/lacuna"), help="the program")
    parser.add_argument("--sentence", default="Ein Mann steht auf der Straße .", help="what is translated")
    parser.add_argument("--rounds", type=int, default=15, help="starts that are timed")
    parser.add_argument("model", help="a checkpoint's folder")
    arguments, options = parser.parse_known_args()
    if arguments.rounds < 1:
        sys.exit(f"bench_start.py: --rounds is {arguments.rounds}; expected at least 1")

    translate = [arguments.lacuna, "translate", "-m", arguments.model, "--quiet", *options]
    version = [arguments.lacuna, "--version"]
    _, translation = start(translate, arguments.sentence)
    rounds = [(start(translate, arguments.sentence)[0], start(version, "")[0]) for _ in range(arguments.rounds)]
    whole, libraries = zip(*rounds)
    print("| model | to the translation, s | libraries alone, s | words |\n| --- | --- | --- | --- |")
    print(f"| {' '.join([arguments.model, *options])} | {shown(whole)} | {shown(libraries)} | {len(translation.split())} |")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What `lacuna translate --guard` costs: guard_cost.py -m MODEL -i TEXT

  scripts/guard_cost.py -m runs/multi30k/averaged -i data/multi30k/test2016.de --threads 1 --pairs 15

Translates a text with and without the guard in turn, greedily and with a beam, and prints for each search, as a table and as a line of JSON: the
median of the pairs' ratios of times, the least and the greatest, and the shortest time with the guard over the shortest without it, since other
work on the machine can only lengthen a time. The time of a start, of a text of one line, is taken off. Without --guard against itself is the
control: how far from 1 its ratios go by themselves. The machine should do nothing else.
"""
import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = {"nothing (control)": (), "--guard": ("--guard",), "--guard retry": ("--guard", "retry")}


def seconds(asked, text, beam_size, flags):
    command = [asked.program, "translate", "-m", asked.model, "-i", text, "-o", "/dev/null", "--beam-size", str(beam_size), "--precision", asked.precision,
               "--threads", str(asked.threads), "--quiet", *flags]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # a warning for each line that is flagged
    return time.perf_counter() - begin


def lines_of(path, count):
    with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
        return file.read().splitlines(keepends=True)[:count or None]


def compare(asked, text, first, beam_size):
    """By way: pairs of the time with it and the time without."""
    start = statistics.median(seconds(asked, first, beam_size, ()) for _ in range(5))
    pairs = {way: [] for way in WAYS}
    if (whole := seconds(asked, text, beam_size, ())) < 3 * start:
        sys.exit(f"guard_cost.py: the text takes {whole:.2f} s, and a start alone {start:.2f}; expected a longer text, or a larger beam")
    for number in range(asked.pairs):
        for way, flags in WAYS.items():
            order = [flags, ()] if number % 2 else [(), flags]
            times = [seconds(asked, text, beam_size, one) - start for one in order]
            pairs[way].append(times if number % 2 else times[::-1])
    return pairs


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("-m", "--model", required=True)
    flags.add_argument("-i", "--input", required=True, help="text, plain or gzip; some seconds of translating")
    flags.add_argument("--program", default="build/cpu/lacuna")
    flags.add_argument("--lines", type=int, default=0, help="of the text; 0 = all")
    flags.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    flags.add_argument("--precision", default="fp32")
    flags.add_argument("--threads", type=int, default=1)
    flags.add_argument("--pairs", type=int, default=9)
    asked = flags.parse_args()
    print("| search | with | time, with / without | least | greatest | shortest times |\n| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.NamedTemporaryFile() as text, tempfile.NamedTemporaryFile() as first:
        text.writelines(lines_of(asked.input, asked.lines))
        first.writelines(lines_of(asked.input, 1))
        text.flush(), first.flush()
        for beam_size in asked.beams:
            for way, pairs in compare(asked, text.name, first.name, beam_size).items():
                ratios = [one / without for one, without in pairs]
                middle = statistics.median(ratios)
                shortest = min(one for one, _ in pairs) / min(without for _, without in pairs)
                print(f"| beam {beam_size} | {way} | {middle:.3f} | {min(ratios):.3f} | {max(ratios):.3f} | {shortest:.3f} |", flush=True)
                print(json.dumps({"task": "guard cost", "beam_size": beam_size, "with": way, "ratio": round(middle, 4), "ratio_of_shortest": round(shortest, 4),
                                  "pairs": len(pairs), "precision": asked.precision, "threads": asked.threads}), file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

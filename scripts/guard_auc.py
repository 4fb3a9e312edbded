#!/usr/bin/env python3
"""How well `lacuna translate --guard` tells bad translations from good ones: guard_auc.py -m MODEL --src FILE --tgt FILE

Makes bad pairs of a parallel test set, takes the guard's measures of them by forced decoding (`lacuna score --guard`) and prints for each kind
the area under the ROC curve against the pairs as they are: of each measure and of the risk, the largest share of a limit that is used up
(1 = told apart, 0.5 = chance); and the share that is flagged.

  shuffled    each source beside the translation of another sentence
  truncated   the first half of each source's words, beside the whole translation
  loops       each translation with an n-gram of 1 to 4 words repeated 3 to 8 times
  noise       each source's letters in random order, translated by the model (`lacuna translate --guard`); against the model's translations
              of the sources
"""
import argparse
import gzip
import json
import math
import os
import random
import subprocess
import sys
import tempfile

from filter_auc import area

MEASURES = ("length_ratio", "loop", "unattended", "null_rate", "token_log_prob", "risk")


def lines_of(path):
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]
    except OSError as error:
        sys.exit(f"guard_auc.py: {path}: {error.strerror}; expected text, plain or gzip")


def badness(measure, value):
    """Larger for worse."""
    if measure == "length_ratio":
        return abs(math.log(value))
    return -value if measure == "token_log_prob" else value


def with_loop(line, random_numbers):
    words = line.split()
    size = min(random_numbers.randint(1, 4), len(words))
    begin = random_numbers.randint(0, len(words) - size)
    ngram = words[begin:begin + size]
    return " ".join(words[:begin + size] + ngram * random_numbers.randint(3, 8) + words[begin + size:])


def shuffled_letters(line, random_numbers):
    letters = list(line)
    random_numbers.shuffle(letters)
    return "".join(letters)


class Lacuna:
    def __init__(self, options, folder):
        self.program, self.flags, self.folder = options.program, ["-m", options.model, *options.flags], folder

    def run(self, *words):
        ended = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"guard_auc.py: {self.program} {words[0]}: {ended.stderr.strip()}")
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def write(self, name, lines):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return path

    def scored(self, src, tgt):
        """The guard's verdicts on given translations."""
        rows = self.run("score", *self.flags, "--json", "--guard", "--src", self.write("src", src), "--tgt", self.write("tgt", tgt))
        return [row["guard"] for row in rows]

    def translated(self, src):
        """Those on the model's own."""
        rows = self.run("translate", *self.flags, "--json", "--guard", "-i", self.write("in", [json.dumps({"text": line}) for line in src]))
        return [row["guard"] for row in rows]


def flagged(verdicts):
    return sum(bool(verdict["flags"]) for verdict in verdicts) / len(verdicts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True, help="checkpoint or run folder")
    parser.add_argument("--src", required=True)
    parser.add_argument("--tgt", required=True)
    parser.add_argument("--program", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/cpu/lacuna"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="more flags of lacuna, after --: -- --threads 2")
    options = parser.parse_args()
    pairs = [(src, tgt) for src, tgt in zip(lines_of(options.src), lines_of(options.tgt)) if src.split() and tgt.split()]
    if len(pairs) < 2:
        sys.exit(f"guard_auc.py: {options.src} and {options.tgt} hold {len(pairs)} pairs; expected 2 at least")
    src, tgt = (list(side) for side in zip(*pairs))
    numbers = random.Random(options.seed)
    order = list(range(len(pairs)))
    numbers.shuffle(order)
    other = {one: next_one for one, next_one in zip(order, order[1:] + order[:1])}
    with tempfile.TemporaryDirectory() as folder:
        lacuna = Lacuna(options, folder)
        given, own = lacuna.scored(src, tgt), lacuna.translated(src)
        kinds = {
            "shuffled": (given, lacuna.scored(src, [tgt[other[i]] for i in range(len(tgt))])),
            "truncated": (given, lacuna.scored([" ".join(line.split()[:(len(line.split()) + 1) // 2]) for line in src], tgt)),
            "loops": (given, lacuna.scored(src, [with_loop(line, numbers) for line in tgt])),
            "noise": (own, lacuna.translated([shuffled_letters(line, numbers) for line in src])),
        }
    print(f"{'kind':<14}{'pairs':>7}" + "".join(f"{measure:>16}" for measure in MEASURES) + f"{'flagged':>10}")
    for kind, (good, bad) in kinds.items():
        areas = (area([badness(measure, one[measure]) for one in bad], [badness(measure, one[measure]) for one in good]) for measure in MEASURES)
        print(f"{kind:<14}{len(bad):>7}" + "".join(f"{value:>16.4f}" for value in areas) + f"{flagged(bad):>10.4f}")
    for kind, good in (("given", given), ("own", own)):
        print(f"{kind:<14}{len(good):>7}" + f"{'':>{16 * len(MEASURES)}}{flagged(good):>10.4f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the bundled German-English corpus: train, valid and test text, word alignments, and statistics. See README.md beside this file."""

import argparse
import hashlib
import json
import os
from pathlib import Path
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from grammar.corpus import NOISE_KINDS, UNIQUE_UP_TO, Recipe, lines  # noqa: E402
from grammar.prng import hash_text  # noqa: E402
from grammar.statistics import Dictionary, SplitStatistics, bleu  # noqa: E402

HERE = Path(__file__).resolve().parent
STAMP = "corpus.json"


class UserMistake(Exception):
    """Something the user can put right; main() prints it and exits with 2."""


def main():
    options = parse_arguments()
    try:
        generate(options)
    except UserMistake as mistake:
        print(f"generate.py: {mistake}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description="Write the bundled German-English corpus.", allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to; made where there is none")
    parser.add_argument("--train", type=_count, default=40000, metavar="N", help="train pairs (default %(default)s)")
    parser.add_argument("--valid", type=_count, default=500, metavar="N", help="validation pairs (default %(default)s)")
    parser.add_argument("--test", type=_count, default=1000, metavar="N", help="test pairs (default %(default)s)")
    parser.add_argument("--seed", type=_count, default=1, metavar="N", help="another seed is another corpus (default %(default)s)")
    parser.add_argument(
        "--jobs",
        type=_jobs,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="processes; the text does not depend on it (default: all cores)",
    )
    parser.add_argument(
        "--shuffle-source", action="store_true", help="put the words of every German line in a random order (a control experiment)"
    )
    for kind in NOISE_KINDS:
        parser.add_argument(
            f"--noise-{kind}", type=_rate, default=0.0, metavar="RATE", help=f"share of train pairs to make {kind}, 0 to 1 (default 0)"
        )
    parser.add_argument(
        "--sacrebleu", metavar="COMMAND", help="how to run sacreBLEU (default: the project's virtual environment, then this Python's)"
    )
    options = parser.parse_args()
    if sum(noise_rates(options).values()) > 1:
        parser.error("the --noise- rates add up to more than 1; lower them")
    return options


def _count(text):
    if not text.isdecimal() or int(text) > 10**9:
        raise argparse.ArgumentTypeError(f"'{text}' should be a whole number from 0 to 1000000000")
    return int(text)


def _jobs(text):
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"'{text}' should be a whole number from 1 to 256")
    return int(text)


def _rate(text):
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' should be a number from 0 to 1")
    return rate


def noise_rates(options):
    return {kind: getattr(options, f"noise_{kind}") for kind in NOISE_KINDS}


def generate(options):
    wanted = {
        "version": source_version(),
        "seed": options.seed,
        "train": options.train,
        "valid": options.valid,
        "test": options.test,
        "shuffle_source": options.shuffle_source,
        "noise": noise_rates(options),
    }
    if is_made(options.out, wanted):
        print(f"{options.out}: made already; nothing to do. Its statistics are in {options.out / STAMP}")
        return
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserMistake(f"--out {options.out} is a file, or lies beneath one; name a folder") from None
    (options.out / STAMP).unlink(missing_ok=True)
    statistics = make(options)
    report(statistics)
    sizes = {path.name: path.stat().st_size for path in sorted(options.out.iterdir()) if path.name in file_names(options)}
    write_whole(
        options.out / STAMP, json.dumps({"made": wanted, "files": sizes, "statistics": statistics}, indent=1, ensure_ascii=False) + "\n"
    )


def source_version():
    """A hash of the generator itself: a changed grammar makes a new corpus."""
    digest = hashlib.sha256()
    for path in sorted([HERE / "generate.py", *(HERE / "grammar").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def is_made(out, wanted):
    """Whether the folder holds just this corpus, complete."""
    try:
        stamp = json.loads((out / STAMP).read_text(encoding="utf-8"))
        return stamp["made"] == wanted and all((out / name).stat().st_size == size for name, size in stamp["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def file_names(options):
    names = [f"{split}.{ending}" for split in ("train", "valid", "test") for ending in ("de", "en", "align")]
    return names + (["train.noise"] if sum(noise_rates(options).values()) else [])


def make(options):
    """Writes the splits, the test set first: what it holds, the others may not."""
    forbidden, dictionary, statistics = set(), Dictionary(), {}
    for split in ("test", "valid", "train"):
        recipe = Recipe(options.seed, noise_rates(options), options.shuffle_source, forbidden)
        counts = SplitStatistics()
        overlaps = 0
        with SplitWriter(options.out, split, "train.noise" in file_names(options)) as writer:
            for chunk in lines(recipe, split, getattr(options, split), options.jobs):
                writer.write(chunk)
                counts.add(chunk)
                overlaps += sum(hash_text(line.german) in forbidden or hash_text(line.english) in forbidden for line in chunk)
                if split == "train":
                    dictionary.add(chunk)
                else:
                    forbidden = forbidden | {line.key for line in chunk} | {hash_text(line.english) for line in chunk}
        statistics[split] = {**counts.summary(), "overlap_with_other_splits": overlaps}
    statistics["dictionary_baseline_bleu"] = baseline(options, dictionary)
    return statistics


class SplitWriter:
    """Writes the files of one split under temporary names, and gives them their own when all is written."""

    def __init__(self, out, split, with_noise):
        columns = {"de": "german", "en": "english", "align": "links"}
        if with_noise and split == "train":
            columns["noise"] = "label"
        elif split == "train":
            (out / "train.noise").unlink(missing_ok=True)
        self._columns = [(out / f"{split}.{ending}", column) for ending, column in columns.items()]
        self._files = []

    def __enter__(self):
        self._files = [open(_temporary(path), "w", encoding="utf-8", newline="\n") for path, _ in self._columns]
        return self

    def write(self, chunk):
        for file, (_, column) in zip(self._files, self._columns):
            file.write("".join([getattr(line, column) + "\n" for line in chunk]))

    def __exit__(self, kind, *_):
        for file, (path, _) in zip(self._files, self._columns):
            file.close()
            if kind is None:
                os.replace(_temporary(path), path)
            else:
                _temporary(path).unlink(missing_ok=True)


def _temporary(path):
    return path.with_name(f".{path.name}.tmp")


def write_whole(path, text):
    _temporary(path).write_text(text, encoding="utf-8")
    os.replace(_temporary(path), path)


def baseline(options, dictionary):
    """BLEU of the word-by-word dictionary on test; None, with a word about it, where it can't be measured."""
    if not options.train or not options.test:
        return None
    german = (options.out / "test.de").read_text(encoding="utf-8").splitlines()
    try:
        return bleu(sacrebleu_command(options), options.out / "test.en", dictionary.translate(german))
    except (OSError, subprocess.CalledProcessError, ValueError):
        if options.sacrebleu:
            raise UserMistake(f"--sacrebleu {options.sacrebleu}: does not run, or prints no BLEU; try it with --version") from None
        print("generate.py: no sacreBLEU found, so the dictionary baseline is not scored (scripts/setup.sh installs it)", file=sys.stderr)
        return None


def sacrebleu_command(options):
    if options.sacrebleu:
        return shlex.split(options.sacrebleu)
    own = HERE.parent / ".venv" / "bin" / "python"
    return [str(own) if own.exists() else sys.executable, "-m", "sacrebleu"]


def report(statistics):
    for split in ("train", "valid", "test"):
        found = statistics[split]
        print(
            f"{split:5}  {found['pairs']} pairs; words {found['words']['de']} de, {found['words']['en']} en; "
            f"vocabulary {found['vocabulary']['de']} de, {found['vocabulary']['en']} en; "
            f"mean length {found['mean_length']['de']} de, {found['mean_length']['en']} en; "
            f"crossing links in {100 * found['crossing_share']:.1f} %; overlaps {found['overlap_with_other_splits']}"
        )
        if set(found["labels"]) - {"clean"}:
            print("       " + ", ".join(f"{label} {times}" for label, times in found["labels"].items()))
    print(
        "train lengths (German words): "
        + ", ".join(f"{words}: {times}" for words, times in statistics["train"]["length_histogram"]["de"].items())
    )
    if statistics["dictionary_baseline_bleu"] is not None:
        print(f"word-by-word dictionary baseline on test: {statistics['dictionary_baseline_bleu']} BLEU (sacreBLEU)")
    if statistics["train"]["pairs"] > UNIQUE_UP_TO:
        print(f"train is larger than {UNIQUE_UP_TO} pairs: it may hold a sentence twice, but none of valid or test")


if __name__ == "__main__":
    sys.exit(main())

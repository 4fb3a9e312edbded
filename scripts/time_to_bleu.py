#!/usr/bin/env python3
"""When a training run first reached a BLEU: time_to_bleu.py --bleu 34 RUN_FOLDER...

One row a run, in Markdown: the step and epoch of the first validation with at least that BLEU, the BLEU, and the seconds of training until then
(validation, saving and start-up left out: the tokens of each stretch of the log over its speed). The run must have been trained in one go.
"""
import argparse
import json
import pathlib
import sys


def records_of(run):
    path = pathlib.Path(run) / "metrics.jsonl"
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except OSError as error:
        sys.exit(f"time_to_bleu.py: {path}: {error.strerror}; expected the folder of a run that has begun")
    except ValueError as error:
        sys.exit(f"time_to_bleu.py: {path}: {error}; expected a JSON object a line")


def first_with(records, bleu):
    """(step, BLEU) of the first validation that reaches it, or None."""
    return next(((row["step"], row["bleu"]) for row in records if row["kind"] == "valid" and row.get("bleu", -1) >= bleu), None)


def training_at(records, step):
    """(epoch, seconds) at a step: each line of the log says how fast the updates since the one before it were; those after the last count like
    its own."""
    rows, before, seconds = [row for row in records if row["kind"] == "train" and row["step"] <= step], 0, 0.0
    if not rows:
        sys.exit(f"time_to_bleu.py: nothing was logged up to step {step}; lower train.log_every")
    for row in [*rows, {**rows[-1], "step": step}]:
        seconds += row["tokens_per_update"] * (row["step"] - before) / row["tokens_per_second"]
        before = row["step"]
    return rows[-1]["epoch"], seconds


def row_of(run, records, bleu):
    found = first_with(records, bleu)
    if found is None:
        best = max((row["bleu"] for row in records if row["kind"] == "valid" and "bleu" in row), default=None)
        return f"| {run} | – | – | {'none' if best is None else f'{best:.2f} at most'} | not reached |"
    step, reached = found
    epoch, seconds = training_at(records, step)
    return f"| {run} | {step:,} | {epoch:g} | {reached:.2f} | {seconds:,.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN_FOLDER")
    parser.add_argument("--bleu", type=float, required=True)
    flags = parser.parse_args()
    rows = [f"| run | step | epoch | BLEU | seconds until BLEU {flags.bleu:g} |", "| --- | --- | --- | --- | --- |"]
    rows += [row_of(run, records_of(run), flags.bleu) for run in flags.runs]
    print("\n".join(rows))


if __name__ == "__main__":
    main()

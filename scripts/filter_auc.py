#!/usr/bin/env python3
"""How well `lacuna score --filter` finds planted noise: filter_auc.py SCORES.tsv LABELS

LABELS has one word a line, "clean" or a kind of noise (data/generate.py writes train.noise). For each kind: the area under the ROC curve of
noisy against clean pairs, by null rate, null contrast and log-probability (1 = told apart, 0.5 = chance; nan = not known); and of the pairs that were dropped, the precision
and recall of noise of any kind, with the recall of each.
"""
import argparse
import math
import sys


def area(noisy, clean):
    """P(a noisy pair's badness > a clean one's), equals counting half; by ranks."""
    values = sorted([(value, True) for value in noisy] + [(value, False) for value in clean])
    ranks, begin = 0.0, 0
    while begin < len(values):
        end = begin
        while end < len(values) and values[end][0] == values[begin][0]:
            end += 1
        ranks += (begin + end + 1) / 2 * sum(is_noisy for _, is_noisy in values[begin:end])
        begin = end
    return (ranks - len(noisy) * (len(noisy) + 1) / 2) / (len(noisy) * len(clean))


def read(scores_path, labels_path):
    try:
        with open(scores_path, encoding="utf-8") as file:
            header = file.readline().split()
            rows = [dict(zip(header, line.rstrip("\n").split("\t"))) for line in file]
        with open(labels_path, encoding="utf-8") as file:
            labels = file.read().split()
    except OSError as error:
        sys.exit(f"filter_auc.py: {error.filename}: {error.strerror}; expected the scores.tsv of `lacuna score --filter`, and a word a line")
    if not {"kept", "log_prob"} <= set(header):
        sys.exit(f"filter_auc.py: {scores_path} has the columns {' '.join(header) or '(none)'}; expected the scores.tsv of `lacuna score --filter`")
    if len(rows) != len(labels):
        sys.exit(f"filter_auc.py: {scores_path} has {len(rows)} pairs and {labels_path} {len(labels)} labels; expected as many in both")
    return rows, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores")
    parser.add_argument("labels")
    options = parser.parse_args()
    rows, labels = read(options.scores, options.labels)
    kinds = sorted(set(labels) - {"clean"})
    if not kinds or "clean" not in labels:
        sys.exit(f"filter_auc.py: {options.labels} holds {sorted(set(labels))}; expected clean pairs and at least one kind of noise")
    print(f"{'noise':<14}{'pairs':>8}{'AUC null rate':>15}{'null contrast':>15}{'log-prob':>10}{'recall':>9}")
    for kind in kinds + ["any"]:
        is_noisy = [label != "clean" if kind == "any" else label == kind for label in labels]
        areas = []
        for column, sign in (("null_rate", 1), ("null_contrast", 1), ("log_prob", -1)):
            if all(row.get(column, "nan") == "nan" for row in rows):
                areas.append(math.nan)
                continue
            badness = [math.inf if row[column] == "nan" else sign * float(row[column]) for row in rows]
            areas.append(area([value for value, noisy in zip(badness, is_noisy) if noisy],
                              [value for value, label in zip(badness, labels) if label == "clean"]))
        dropped = sum(noisy and row["kept"] == "0" for noisy, row in zip(is_noisy, rows))
        print(f"{kind:<14}{sum(is_noisy):>8}{areas[0]:>15.4f}{areas[1]:>15.4f}{areas[2]:>10.4f}{dropped / sum(is_noisy):>9.4f}")
    dropped = [label for label, row in zip(labels, rows) if row["kept"] == "0"]
    if dropped:
        print(f"precision of what was dropped: {sum(label != 'clean' for label in dropped) / len(dropped):.4f} of {len(dropped)} pairs")


if __name__ == "__main__":
    main()

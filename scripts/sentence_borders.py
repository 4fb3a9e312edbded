#!/usr/bin/env python3
"""How well `lacuna split` finds the borders of sentences.

    scripts/sentence_borders.py --language de FILE ...

Each FILE (plain or .gz) has one sentence a line, as test sets of news have. Lines that end a sentence by a mark, which headlines do not, are
joined by eights with a space between them, the program splits them again, and borders are compared: recall is the share of the line breaks that
are found, precision the share of what is found that was a line break. Lines that hold several sentences themselves, as translators write them,
count against precision. --show N prints some of the borders that are missed and of those that are none.
"""
import argparse
import gzip
import itertools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES_JOINED = 8
MARKS, CLOSING = (".", "!", "?", "\u2026", "\u3002"), "\"'`)]\u00bb\u00ab\u201c\u201d\u2018\u2019\u203a\u2039"


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = [" ".join(line.split()) for line in file]
    return [line for line in lines if line.rstrip(CLOSING + " ").endswith(MARKS)]


def borders_of(sentences):
    """Where sentences end in their text, as numbers of characters that are no spaces."""
    return list(itertools.accumulate(len("".join(sentence.split())) for sentence in sentences))[:-1]


def context(text, border):
    """The text around a border, which stands as |."""
    seen = 0
    for i, character in enumerate(text):
        seen += not character.isspace()
        if seen == border:
            return f"{text[max(0, i - 40):i + 1]}|{text[i + 1:i + 30]}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--language", required=True, help="code of their language")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/lacuna"))
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N of each kind of errors")
    arguments = parser.parse_args()

    lines = [line for path in arguments.files for line in lines_of(path)]
    groups = [lines[i:i + LINES_JOINED] for i in range(0, len(lines), LINES_JOINED)]
    texts = [" ".join(group) for group in groups]
    split = subprocess.run([arguments.program, "split", "--language", arguments.language], input="\n".join(texts) + "\n", text=True,
                           encoding="utf-8", check=True, stdout=subprocess.PIPE).stdout.split("\n")[:-1]
    sentences = iter(split)
    found = true = hits = 0
    missed, invented = [], []
    for group, text in zip(groups, texts):
        size, mine = len("".join(text.split())), []
        while size > 0:
            mine.append(next(sentences))
            size -= len("".join(mine[-1].split()))
        ours, theirs = set(borders_of(mine)), set(borders_of(group))
        found, true, hits = found + len(ours), true + len(theirs), hits + len(ours & theirs)
        missed += [context(text, border) for border in sorted(theirs - ours)]
        invented += [context(text, border) for border in sorted(ours - theirs)]
    for name, some in (("missed", missed), ("invented", invented)):
        for text in some[:: max(1, len(some) // max(1, arguments.show))][:arguments.show]:
            print(f"{name}: {text}")
    print(f"{arguments.language}: {len(lines)} lines, {true} borders: recall {100 * hits / true:.2f} %, precision {100 * hits / found:.2f} %")


if __name__ == "__main__":
    main()

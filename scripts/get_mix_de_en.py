#!/usr/bin/env python3
"""A mid-size German-English corpus (246,000 pairs) for configs/mix_de_en/, in data/mix_de_en: image captions, everyday sentences, manual
pages and news, lowercased and tokenized as gold word alignments are, which come along.

  .venv/bin/python scripts/get_mix_de_en.py --from FOLDER    (it needs sacreBLEU's tokenizer)
                                            reads FOLDER/multi30k, tatoeba-deen, manpages-deen: train.{de,en}.gz; wmt-news:
                                            newstest2008 to 2013.{de,en}.gz; goldalign-deen: dev.{de,en,align}.gz

Multi30k is the project multi30k/dataset, Tatoeba the selection of manythings.org/anki, manual pages the translations of manpages-l10n, news
the test sets of WMT; the gold links are those of 50 sentences of Europarl by E. Bicici (SMTData).
"""
import argparse
import gzip
import pathlib
import re
import shutil
import sys
import tempfile

try:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
except ImportError:
    sys.exit("scripts/get_mix_de_en.py: this Python has no sacreBLEU; after scripts/setup.sh, start it with .venv/bin/python")

TARGET = pathlib.Path(__file__).resolve().parent.parent / "data/mix_de_en"
TRAIN = ["multi30k/train", "tatoeba-deen/train", "manpages-deen/train"] + [f"wmt-news/newstest{year}" for year in range(2008, 2013)]
VALID = ["wmt-news/newstest2013"]
GOLD = "goldalign-deen/dev"

tokenize = Tokenizer13a()


def as_gold(line):
    """As the gold text is: lowercased, tokens apart, an apostrophe at the begin of what follows it."""
    return re.sub(r"\s*(['’])\s*", r" '", tokenize(line.strip()).lower()).strip()


def write_side(file, folder, stems, language):
    count = 0
    with gzip.open(file, "wt", encoding="utf-8", newline="\n") as out:
        for stem in stems:
            with gzip.open(folder / f"{stem}.{language}.gz", "rt", encoding="utf-8", newline="\n") as lines:
                for line in lines:
                    out.write(as_gold(line) + "\n")
                    count += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=pathlib.Path, required=True, help="folder of the corpora")
    folder = parser.parse_args().folder
    needed = [f"{stem}.{language}.gz" for stem in TRAIN + VALID + [GOLD] for language in ("de", "en")] + [f"{GOLD}.align.gz"]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        sys.exit(f"scripts/get_mix_de_en.py: {folder} lacks {', '.join(missing)}")
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET, prefix="new.") as new:  # what was there before is replaced once all is there
        for name, stems in (("train", TRAIN), ("valid", VALID)):
            counts = [write_side(pathlib.Path(new) / f"{name}.{language}.gz", folder, stems, language) for language in ("de", "en")]
            if counts[0] != counts[1]:
                sys.exit(f"scripts/get_mix_de_en.py: {name}: {counts[0]} German lines and {counts[1]} English ones; expected as many of both")
            print(f"{TARGET / name}: {counts[0]} pairs", file=sys.stderr)
        for file in sorted(pathlib.Path(new).iterdir()):
            file.replace(TARGET / file.name)
    for part in ("de", "en", "align"):
        shutil.copy(folder / f"{GOLD}.{part}.gz", TARGET / f"gold.{part}.gz")


if __name__ == "__main__":
    main()

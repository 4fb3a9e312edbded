#!/usr/bin/env python3
"""How many gold-linked words of a text are linked right in its translation.

  lacuna translate -m MODEL -i test.de --alignment word > test.out
  scripts/linked_words.py --translations test.out --references test.en --gold test.align

Reads `text ||| 0-0 1-2` lines. Only lines whose translation is the reference count, as gold links are between source and reference; with
--links in place of --translations (from lacuna align), all lines do. A source word with gold links is linked right if it has links, and all
of them are gold ones (sure or possible): what an element around it would be put around. Prints a line of JSON.
"""
import argparse
import gzip
import json
import sys


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def targets(text):
    """The target words that each source word is linked with."""
    found = {}
    for link in text.replace("?", "-").replace("p", "-").split():
        source, target = link.split("-")
        found.setdefault(int(source), set()).add(int(target))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--translations", help="output of lacuna translate --alignment word")
    parser.add_argument("--links", help="output of lacuna align, in place of translations")
    parser.add_argument("--references", help="reference translations")
    parser.add_argument("--gold", required=True, help="gold links between source and reference")
    flags = parser.parse_args()
    gold = lines_of(flags.gold)
    if bool(flags.translations) == bool(flags.links) or (flags.translations and not flags.references):
        parser.error("expected --translations and --references, or --links")
    if flags.links:
        pairs = [(None, links) for links in lines_of(flags.links)]
        references = [None] * len(pairs)
    else:
        pairs = [tuple(line.rsplit(" ||| ", 1)) if " ||| " in line else (line, "") for line in lines_of(flags.translations)]
        references = lines_of(flags.references)
    if not len(pairs) == len(references) == len(gold):
        sys.exit(f"{len(pairs)}, {len(references)} and {len(gold)} lines; expected as many in all files")
    words = right = linked = counted = 0
    for (text, links), reference, of_gold in zip(pairs, references, gold):
        if text != reference:
            continue
        counted += 1
        found = targets(links)
        for word, wanted in targets(of_gold).items():
            words += 1
            linked += word in found
            right += word in found and found[word] <= wanted
    print(json.dumps({"lines": counted, "of_lines": len(pairs), "words": words, "linked": round(100 * linked / max(1, words), 2),
                      "right": round(100 * right / max(1, words), 2)}))


if __name__ == "__main__":
    main()

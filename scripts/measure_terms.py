#!/usr/bin/env python3
"""How often terms come out, and what they cost.

  scripts/measure_terms.py --lacuna build/cpu/lacuna -m MODEL --src test.de --tgt test.en --links test.align

Takes from each pair of a test set up to --terms source words of five letters or more that are linked with one target word, which is linked with
that word alone, as terms: what the reference calls them. Translates with and without them. Prints a line of JSON: the share of terms that are in
the translation as whole words, and sacreBLEU, of both. `sacrebleu` must be in PATH.
"""
import argparse
import collections
import gzip
import json
import random
import re
import subprocess
import tempfile


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def terms_of(source, target, links, most, draw):
    """Source words and what the reference calls them, without punctuation around."""
    src_words, tgt_words = source.split(" "), target.split(" ")
    pairs = [tuple(map(int, re.split("[-?p]", link))) for link in links.split()]
    src_count, tgt_count = collections.Counter(s for s, _ in pairs), collections.Counter(t for _, t in pairs)
    found = {}
    for s, t in pairs:
        word, term = (re.sub(r"^\W+|\W+$", "", text) for text in (src_words[s], tgt_words[t]))
        if src_count[s] == tgt_count[t] == 1 and len(word) >= 5 and word.isalpha() and term.isalpha() and source.count(word) == 1:
            found[word] = term
    return dict(draw.sample(sorted(found.items()), min(most, len(found))))


def translations(flags, sources, terms):
    given = "".join(json.dumps({"text": text, "terms": some} if some else {"text": text}) + "\n" for text, some in zip(sources, terms))
    command = [flags.lacuna, "translate", "-m", flags.model, "--json", "--quiet"]
    ended = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [json.loads(line)["translation"] for line in ended.stdout.splitlines()]


def bleu(hypotheses, reference):
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file, tempfile.NamedTemporaryFile("w", encoding="utf-8") as of_reference:
        file.write("\n".join(hypotheses) + "\n")
        file.flush()
        of_reference.write("\n".join(reference) + "\n")
        of_reference.flush()
        ended = subprocess.run(["sacrebleu", of_reference.name, "-i", file.name, "-b", "-w", "2"], capture_output=True, text=True, check=True)
    return float(ended.stdout)


def share(hypotheses, terms):
    total = sum(len(some) for some in terms)
    there = sum(bool(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text)) for text, some in zip(hypotheses, terms) for term in some.values())
    return round(100 * there / max(1, total), 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", default="lacuna", help="the program")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--src", required=True)
    parser.add_argument("--tgt", required=True)
    parser.add_argument("--links", required=True, help="links between both: gold ones, or of lacuna align")
    parser.add_argument("--terms", type=int, default=2, help="terms of a sentence, at most")
    parser.add_argument("--wrong", action="store_true", help="terms are words that stand for none: a made-up one for each source word")
    flags = parser.parse_args()
    sources, references = lines_of(flags.src), lines_of(flags.tgt)
    draw = random.Random(1)
    terms = [terms_of(*pair, flags.terms, draw) for pair in zip(sources, references, lines_of(flags.links))]
    if flags.wrong:
        terms = [{word: f"Term{word[:2].lower()}" for word in some} for some in terms]
    without, with_terms = translations(flags, sources, [{}] * len(sources)), translations(flags, sources, terms)
    print(json.dumps({"lines": len(sources), "terms": sum(map(len, terms)), "out_without": share(without, terms), "out": share(with_terms, terms),
                      "bleu_without": bleu(without, references), "bleu": bleu(with_terms, references)}))


if __name__ == "__main__":
    main()

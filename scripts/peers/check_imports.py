#!/usr/bin/env python3
"""Imports models and lets the programs that they come from translate, too: does Lacuna say what they say?

    scripts/peers/check_imports.py --src data/bundled/test.de --tgt data/bundled/test.en --model opus-mt-de-en [--model ...]

For each model a row of a table: how many of the first lines come out equal with greedy search and with beams of 4 and 6, of those that do not how
many Lacuna's search gives at least the score that the other program's gives its own, and the largest difference of the log-probabilities of the
given translations, in nats a sentence. A score is the log-probability divided by the number of tokens, eos included. A folder with config.json is loaded by transformers (packages
transformers, torch, sentencepiece, sacremoses), one with a .npz by Marian (package pymarian, or --marian with the folder of its programs).
M2M100 and NLLB need --src-tag and --tgt-tag. All search without a limit by the source's length, but with --max-length. The exit status is 1
if greedy search or a log-probability (1e-3 nats) differed.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import check_exports
from check_exports import equal, lacuna, lines_of, scores

MOST_DIFFERENCE = 1e-3
BEAMS = (1, 4, 6)
ROUNDING = 1e-4  # of a score: what two programs may differ by on one translation
MARIAN = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"  # what the package pymarian has in place of programs
PROGRAMS = {"decode": "decoder", "score": "scorer"}


def translations(flags, model, src, beam):
    """Lacuna's translations of the lines, each with its score."""
    lines = lacuna(flags, "translate", "-m", model, "--beam-size", beam, "--max-length-ratio", 1e6, "--max-length", flags.max_length, "--json",
                   "--log-level", "error", text="".join(json.dumps({"text": line}) + "\n" for line in src)).splitlines()
    return [(line["translation"], line["score"]) for line in map(json.loads, lines)]


def compared(ours, theirs):
    """A cell of the table: how many are equal, and of the others, how many of ours have at least their score."""
    others = [one >= other - ROUNDING for (text, one), (their, other) in zip(ours, theirs)
              if text.strip() != their.strip()]
    well = f", {sum(others)} of {len(others)} others score as well" if others else ""
    return f"{equal([text for text, _ in ours], [text for text, _ in theirs])}{well}"


class Transformers(check_exports.Transformers):
    """A folder as transformers loads it, with tags of languages."""

    def __init__(self, folder, flags):  # pylint: disable=super-init-not-called
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        torch.set_num_threads(1)
        tags = {"src_lang": flags.src_tag.strip("_"), "tgt_lang": flags.tgt_tag.strip("_")} if flags.tgt_tag else {}
        self.tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False, **tags)
        self.model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.start = {"forced_bos_token_id": self.tokenizer.convert_tokens_to_ids(flags.tgt_tag)} if flags.tgt_tag else {}
        if not self.tokenizer.convert_tokens_to_ids("<unk>") in (self.model.generation_config.suppress_tokens or []):
            self.start["bad_words_ids"] = [[self.tokenizer.unk_token_id], [self.tokenizer.pad_token_id]]  # as Lacuna's allow_unk: false

    def translate(self, src, beam, most):
        texts, found = [], []
        for begin in range(0, len(src), 20):
            batch = self.tokenizer(src[begin:begin + 20], return_tensors="pt", padding=True)
            said = self.model.generate(**batch, num_beams=beam, do_sample=False, max_length=most + 1, forced_eos_token_id=self.model.config.eos_token_id,
                                       length_penalty=1.0, early_stopping=False, return_dict_in_generate=True, output_scores=True, **self.start)
            texts += self.tokenizer.batch_decode(said.sequences, skip_special_tokens=True)
            found += said.sequences_scores.tolist() if beam > 1 else [math.nan] * len(said.sequences)  # greedy search has none
        return [(re.sub("__[a-z]+__", "", text), score) for text, score in zip(texts, found)]


class Marian:
    """Marian on text that is cut into pieces here, where its vocabulary is a list, as Opus-MT's preprocessing does."""

    def __init__(self, folder, flags):
        self.folder = pathlib.Path(folder)
        self.programs = pathlib.Path(flags.marian) if flags.marian else None
        self.model = next(path for path in sorted(self.folder.glob("*.npz")))
        ids = sorted(self.folder.glob("*vocab.yml"))
        self.is_cut = bool(ids)
        self.vocabularies = [str(ids[0] if ids else next(path for path in sorted(self.folder.glob("*.spm"))))] * 2
        if self.is_cut:
            import sentencepiece

            self.source, self.target = (sentencepiece.SentencePieceProcessor(model_file=str(self.folder / f"{side}.spm")) for side in ("source", "target"))

    def cut(self, lines, model):
        if not self.is_cut:
            return lines
        tagged = [re.fullmatch(r"(>>\S+<<)?(.*)", line).groups(default="") for line in lines]
        return [" ".join([*([tag] if tag else []), *model.encode(text, out_type=str)]) for tag, text in tagged]

    def run(self, program, words, text=""):
        start = [sys.executable, "-c", MARIAN, program] if self.programs is None else [self.programs / f"marian-{PROGRAMS[program]}"]
        ended = subprocess.run([*start, "-m", self.model, "-v", *self.vocabularies, "--cpu-threads", "1", "--quiet", *map(str, words)],
                               input=text, capture_output=True, text=True, check=True)
        return ended.stdout.splitlines()

    def translate(self, src, beam, most):
        text = "".join(f"{line}\n" for line in self.cut(src, self.source if self.is_cut else None))
        words = ["--beam-size", beam, "--normalize", 1, "--max-length", 1000, "--max-length-factor", 100, "--n-best"]
        best = {}
        for line in self.run("decode", words, text):
            number, said, _, score = line.split(" ||| ")
            best.setdefault(int(number), (said, float(score)))
        return [(self.target.decode(said.split()).replace("\u2581", " ") if self.is_cut else said, score) for _, (said, score) in sorted(best.items())]

    def scores(self, src, tgt):
        with tempfile.TemporaryDirectory() as name:
            files = []
            for side, lines in (("source", src), ("target", tgt)):
                files.append(pathlib.Path(name) / side)
                files[-1].write_text("".join(f"{line}\n" for line in self.cut(lines, getattr(self, side, None))), encoding="utf-8")
            return [float(line) for line in self.run("score", ["-t", *files])]


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--lacuna", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/cpu/lacuna"))
    flags.add_argument("--model", action="append", required=True, help="folder of a model; several, each after its own --model")
    flags.add_argument("--src", required=True, help="source text")
    flags.add_argument("--tgt", required=True, help="translations to give log-probabilities to")
    flags.add_argument("--src-tag", default="")
    flags.add_argument("--tgt-tag", default="")
    flags.add_argument("--lines", type=int, default=200)
    flags.add_argument("--max-length", type=int, default=256, help="tokens of a translation, at most")
    flags.add_argument("--marian", help="folder of marian-decoder and marian-scorer")
    flags.add_argument("--record", help="write what the other program said to this JSON file (one model)")
    flags = flags.parse_args()
    src, tgt = lines_of(flags.src, flags.lines), lines_of(flags.tgt, flags.lines)
    print("| model | greedy equal | beam 4 equal | beam 6 equal | log-probabilities differ by |\n| --- | --- | --- | --- | --- |")
    all_well = True
    for model in flags.model:
        is_hf = (pathlib.Path(model) / "config.json").exists()
        peer = (Transformers if is_hf else Marian)(model, flags)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tags = [word for side in ("src", "tgt") if (tag := getattr(flags, f"{side}_tag")) for word in (f"--{side}-tag", tag)]
            lacuna(flags, "import", model, "-o", folder / "model", "--quiet", *tags)
            theirs = {beam: peer.translate(src, beam, flags.max_length) for beam in BEAMS}
            cells = [compared(translations(flags, folder / "model", src, beam), theirs[beam]) for beam in BEAMS]
            given = peer.scores(src, tgt)
            difference = max(abs(a - b) for a, b in zip(scores(flags, folder / "model", src, tgt, folder), given))
        all_well &= cells[0] == f"{len(src)} of {len(src)}" and difference <= MOST_DIFFERENCE
        print(f"| {model} | {' | '.join(cells)} | {difference:.1e} |", flush=True)
        if flags.record:
            said = {"src": src, "tgt": tgt, "greedy": [text for text, _ in theirs[1]], "scores": given}
            pathlib.Path(flags.record).write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Exports models and lets the other programs translate with them: do they say what Lacuna says?

    scripts/peers/check_exports.py --src data/bundled/test.de --tgt data/bundled/test.en --model runs/bundled [--model ...]

For each model and format, a row of a table: how many of the first lines come out equal with greedy search and with beam 5, and the largest
difference of the log-probabilities of the given translations, in nats a sentence. All search without a limit by the source's length, which
only Lacuna has, but with --max-length. A program whose package is missing is left out; what a format refuses is
said. Needs, as wanted, the packages transformers, torch, sentencepiece and sacremoses; ctranslate2; argostranslate. The exit status is 1 if
transformers printed a warning, or if greedy search or a log-probability (1e-3 nats) differed.
"""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

PROGRAMS = {"hf": "transformers", "ctranslate2": "ctranslate2", "argos": "argostranslate"}
MOST_DIFFERENCE = 1e-3


def lines_of(path, count):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for _, line in zip(range(count), file)]


def lacuna(flags, *words, text=""):
    ended = subprocess.run([flags.lacuna, *map(str, words)], input=text, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip().splitlines()[-1])
    return ended.stdout


def translations(flags, model, src, beam):
    text = "".join(f"{line}\n" for line in src)
    return lacuna(flags, "translate", "-m", model, "--beam-size", beam, "--max-length-ratio", 1e6, "--max-length", flags.max_length,
                  "--log-level", "error", text=text).splitlines()


def scores(flags, model, src, tgt, folder):
    for name, lines in (("src", src), ("tgt", tgt)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [float(line) for line in lacuna(flags, "score", "-m", model, "--src", folder / "src", "--tgt", folder / "tgt", "--log-level", "error").splitlines()]


class Transformers:
    """A folder as transformers loads it: by pipeline("translation") where that is there (before version 5), else by its parts."""

    def __init__(self, folder):
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        self.folder = folder

    def translate(self, src, beam, most):
        import transformers

        if int(transformers.__version__.split(".")[0]) < 5:
            pipeline = transformers.pipeline("translation", str(self.folder), device="cpu")
            return [result["translation_text"] for result in pipeline(src, num_beams=beam, max_length=most + 1, batch_size=50)]
        batch = self.tokenizer(src, return_tensors="pt", padding=True)
        return self.tokenizer.batch_decode(self.model.generate(**batch, num_beams=beam, max_length=most + 1), skip_special_tokens=True)

    def scores(self, src, tgt):
        import torch

        sums = []
        for source, target in zip(src, tgt):
            batch = self.tokenizer(source, return_tensors="pt")
            labels = self.tokenizer(text_target=target, return_tensors="pt").input_ids
            with torch.no_grad():
                log_probs = self.model(**batch, labels=labels).logits.double().log_softmax(-1)
            sums.append(log_probs.gather(2, labels.unsqueeze(2)).sum().item())
        return sums


class Ctranslate2:
    """A folder as CTranslate2 loads it. Its float32 is that of the file."""

    def __init__(self, folder):
        import ctranslate2
        import sentencepiece

        self.translator = ctranslate2.Translator(str(folder), compute_type="float32")
        self.source, self.target = (sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm")) for side in ("source", "target"))

    def translate(self, src, beam, most):
        pieces = self.source.encode(src, out_type=str)
        results = self.translator.translate_batch(pieces, beam_size=beam, length_penalty=1, disable_unk=True, max_decoding_length=most - 1)  # it does not count eos
        return [self.target.decode(result.hypotheses[0]) for result in results]

    def scores(self, src, tgt):
        results = self.translator.score_batch(self.source.encode(src, out_type=str), self.target.encode(tgt, out_type=str))
        return [sum(result.log_probs) for result in results]


class WholeLines:
    """In place of Argos Translate's splitters, whose models it would fetch: a line is a sentence."""

    def split_sentences(self, text):
        return [text]


class Argos:
    """A package that Argos Translate has installed, in a folder of its own."""

    def __init__(self, file):
        os.environ.update({"ARGOS_PACKAGES_DIR": str(file.parent / "packages"), "ARGOS_COMPUTE_TYPE": "float32"})
        import argostranslate.package
        import argostranslate.settings
        import argostranslate.translate

        argostranslate.settings.package_data_dir = file.parent / "packages"
        argostranslate.settings.package_dirs = [argostranslate.settings.package_data_dir]
        argostranslate.settings.package_data_dir.mkdir(exist_ok=True)
        argostranslate.package.install_from_path(file)
        package = argostranslate.package.get_installed_packages()[0]
        languages = [argostranslate.translate.Language(code, name)
                     for code, name in ((package.from_code, package.from_name), (package.to_code, package.to_name))]
        self.translation = argostranslate.translate.PackageTranslation(*languages, package)
        self.translation.sentencizer = WholeLines()

    def translate(self, src, beam, most):  # its own limit and length penalty stand; it has no greedy search
        if beam == 1:
            return None
        return [self.translation.hypotheses(line, beam)[0].value for line in src]


def loaded(kind, folder):
    return {"hf": Transformers, "ctranslate2": Ctranslate2, "argos": Argos}[kind](folder)


def equal(ours, theirs):
    return f"{sum(a.strip() == b.strip() for a, b in zip(ours, theirs))} of {len(ours)}"


def try_format(kind, place, src, tgt, most):
    """What a program says to the folder: translations by beam, scores, and what it printed on the way."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        program = loaded(kind, place)
        found = {"translations": {beam: program.translate(src, beam, most) for beam in (1, 5)}}
        if hasattr(program, "scores"):
            found["scores"] = program.scores(src, tgt)
    found["said"] = said.getvalue() + "".join(f"{warning.message}\n" for warning in warned if issubclass(warning.category, UserWarning))
    return found


def worker(words):
    """One program in a process of its own: what it prints and keeps is then its own, too."""
    kind, place, src, tgt = words[0], pathlib.Path(words[1]), *(json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in words[2:4])
    print(json.dumps(try_format(kind, place, src, tgt, int(words[4]))))


def row(flags, kind, model, ours, src, tgt, folder):
    """A row of the table, and whether all is well."""
    place = folder / ("model.argosmodel" if kind == "argos" else kind)
    try:
        lacuna(flags, "export", "-m", model, "--to", kind, "-o", place, "--quiet", *flags.overrides)
    except RuntimeError as error:
        return [f"refused: {error}"], True
    for name, lines in (("src.json", src), ("tgt.json", tgt)):
        (folder / name).write_text(json.dumps(lines), encoding="utf-8")
    ended = subprocess.run([sys.executable, __file__, "--worker", kind, place, folder / "src.json", folder / "tgt.json", str(flags.max_length)],
                           capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        return [f"failed: {ended.stderr.strip().splitlines()[-1]}"], False
    found = json.loads(ended.stdout.splitlines()[-1])
    said = "".join(line for line in (ended.stderr + found["said"]).splitlines(True) if not line.startswith("Device set to use"))
    is_well, cells = kind != "hf" or not said, []
    if kind == "hf" and said:
        print(said, file=sys.stderr)
    for beam in ("1", "5"):
        theirs = found["translations"][beam]
        cells.append(equal(ours[beam], theirs) if theirs else "")
        is_well &= beam == "5" or kind == "argos" or cells[-1] == f"{len(src)} of {len(src)}"
    if "scores" in found:
        difference = max(abs(a - b) for a, b in zip(ours["scores"], found["scores"]))
        is_well &= difference <= MOST_DIFFERENCE
        cells.append(f"{difference:.1e}")
    return cells + [""] * (3 - len(cells)), is_well


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2:])
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--lacuna", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/cpu/lacuna"))
    flags.add_argument("--model", action="append", required=True, help="run folder or checkpoint; several, each after its own --model")
    flags.add_argument("--src", required=True, help="source text")
    flags.add_argument("--tgt", required=True, help="translations to give log-probabilities to")
    flags.add_argument("--lines", type=int, default=200)
    flags.add_argument("--max-length", type=int, default=256, help="tokens of a translation, at most")
    flags.add_argument("--to", choices=list(PROGRAMS), action="append", help="only this format")
    flags.add_argument("overrides", nargs="*", help="after --: flags for `lacuna export`")
    flags = flags.parse_args()
    src, tgt = lines_of(flags.src, flags.lines), lines_of(flags.tgt, flags.lines)
    kinds = [kind for kind in flags.to or PROGRAMS if importlib.util.find_spec(PROGRAMS[kind])]
    print("| model | format | greedy equal | beam 5 equal | log-probabilities differ by |\n| --- | --- | --- | --- | --- |")
    all_well = True
    for model in flags.model:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ours = {beam: translations(flags, model, src, beam) for beam in ("1", "5")} | {"scores": scores(flags, model, src, tgt, folder)}
            for kind in kinds:
                cells, is_well = row(flags, kind, model, ours, src, tgt, folder)
                all_well &= is_well
                print(f"| {model} | {kind} | {' | '.join(cells)} |", flush=True)
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())

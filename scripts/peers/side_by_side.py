#!/usr/bin/env python3
"""Lacuna and its peers at the same work, in turn: tables of ratios in Markdown. Started by scripts/bench_peers.sh, which says how."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE.parent.parent / "configs/multi30k_de_en/small.yaml"
DROPOUT = [word for name in ("dropout", "attention_dropout", "activation_dropout") for word in (f"--model.{name}", "0.1")]
OUR_PRECISIONS = ["fp32", "bf16", "int8"]  # of translating
LATENCY_LINES = 60


def say(text):
    print(text, file=sys.stderr, flush=True)


def result_of(command, preload=None):
    """The JSON that a command prints; None if it fails, which is said."""
    environment = {**os.environ, **({"LD_PRELOAD": preload} if preload else {})}
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, check=False)
    if ended.returncode != 0:
        say(f"failed: {' '.join(map(str, command))}\n{ended.stderr[-800:]}")
        return None
    text = ended.stdout.strip()
    return json.loads(text if text.startswith("{\n") else text.splitlines()[-1])


def in_turn(contestants, rounds):
    """The results of each, measured one after the other, again and again; one that fails is left out from then on."""
    results = {name: [] for name in contestants}
    for number in range(1, rounds + 1):
        for name in list(results):
            say(f"round {number}: {name}")
            result = result_of(*contestants[name])
            if result is None:
                del results[name]
            else:
                results[name].append(result)
    return results


def median(results, key):
    return statistics.median(result[key] for result in results)


def print_table(title, results, key, unit):
    """A column of ratios for each of ours: above 1 it is faster."""
    ours = [name for name in results if name.startswith("Lacuna")]
    print(f"\n{title}\n\n| | {unit} | {''.join(f'{name} / it | ' for name in ours)}peak MiB |\n| --- | --- | {'--- | ' * len(ours)}--- |")
    for name, measured in results.items():
        speed = median(measured, key)
        ratios = ["" if name in ours else f"{median(results[our], key) / speed:.2f}" for our in ours]
        cells = [name, f"{speed:,.{0 if speed >= 1000 else 1}f}", *ratios, f"{median(measured, 'peak_mebibytes'):,.0f}"]
        print(f"| {' | '.join(cells)} |")
    sys.stdout.flush()


def tcmalloc():
    """A caching allocator, with which PyTorch is faster; None if it is not installed."""
    return next((str(path) for path in pathlib.Path("/usr/lib").glob("**/libtcmalloc_minimal.so.4")), None)


def has(python, package):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def lacuna_train(flags, precision, steps):
    src, tgt = (flags.data / f"train.{language}.gz" for language in ("de", "en"))
    return [flags.lacuna, "bench", "train", "-c", CONFIG, "--json", "--quiet", "--threads", flags.threads, "--steps", steps, "--folder", flags.folder,
            "--data.train", f"[{{src: {src}, tgt: {tgt}}}]", "--model.preset", flags.shape, "--device", flags.device, "--train.precision", precision,
            "--train.batch_tokens", "4096", *DROPOUT]


def where(flags):
    return f"{flags.threads} threads" if flags.device == "cpu" else flags.device


def compare_training(flags, precision, preload):
    ours = ["fp32", "bf16x3"] if precision == "fp32" and flags.device == "cpu" else [precision]
    contestants = {f"Lacuna {each}": (lacuna_train(flags, each, flags.steps), None) for each in ours}
    for peer, title, package in (("torch", "PyTorch nn.Transformer", "torch"), ("marian", "transformers MarianMT", "transformers")):
        if not has(flags.python, package):
            say(f"left out: {title}: {flags.python} lacks the package {package}")
            continue
        command = [flags.python, HERE / "train.py", "--peer", peer, "--spm", flags.folder / "spm.model", "--src", flags.data / "train.de.gz", "--tgt",
                   flags.data / "train.en.gz", "--shape", flags.shape, "--device", flags.device, "--threads", flags.threads, "--steps", flags.steps]
        contestants[f"{title} {precision}{' + tcmalloc' if preload else ''}"] = (command + ["--bf16"] * (precision == "bf16"), preload)
    title = f"Training, {flags.shape} model, {precision}, {where(flags)}, batches of 4096 tokens"
    print_table(title, in_turn(contestants, flags.rounds), "tgt_tokens_per_second", "target tokens/s")


def lacuna_translate(flags, precision, beam, threads, *more):
    length = ["--translate.min_length", flags.length, "--translate.max_length", flags.length] if flags.length else []
    return [flags.lacuna, "bench", "translate", "--json", "-m", flags.model, "-i", flags.data / "test2016.de.gz", "--threads", threads,
            "--translate.beam_size", beam, "--translate.precision", precision, *length, *more]


def ct2_translate(flags, model, compute, beam, workers, threads, *more):
    return [flags.python, HERE / "translate_ct2.py", "--model", model, "--spm", flags.checkpoint / "spm.model", "--src", flags.data / "test2016.de.gz",
            "--compute", compute, "--workers", workers, "--threads", threads, "--beam-size", beam, "--length", flags.length, *more]


def compare_translating(flags, model, preload):
    contestants = {f"Lacuna {precision}": (lacuna_translate(flags, precision, 5, flags.threads), None) for precision in OUR_PRECISIONS}
    for compute in ("float32", "int8"):
        for workers, threads in ((flags.threads, 1), (1, flags.threads)):
            contestants[f"CTranslate2 {compute}, {workers} x {threads} threads{' + tcmalloc' if preload else ''}"] = (ct2_translate(flags, model, compute, 5, workers, threads), preload)
    title = f"Translating test2016, beam 5, the same weights, {flags.threads} threads"
    print_table(title, in_turn(contestants, flags.rounds), "output_tokens_per_second", "output tokens/s")


def compare_latency(flags, model, preload, beam):
    limit = ["--limit", LATENCY_LINES]
    contestants = {f"Lacuna {precision}": (lacuna_translate(flags, precision, beam, 1, "--translate.batch_tokens", "1", *limit), None)
                   for precision in OUR_PRECISIONS}
    for compute in ("float32", "int8"):
        contestants[f"CTranslate2 {compute}{' + tcmalloc' if preload else ''}"] = (ct2_translate(flags, model, compute, beam, 1, 1, "--one-by-one", *limit), preload)
    title = f"One sentence after the other, {LATENCY_LINES} lines, one thread, beam {beam}{f', {flags.length} steps each' if flags.length else ''}"
    print_table(title, in_turn(contestants, flags.rounds), "sentences_per_second", "sentences/s")


def checkpoint_of(run):
    """The folder that holds the weights: the run's averaged, best or last checkpoint, or what was given itself."""
    return next((run / name for name in ("averaged", "best", "last") if (run / name).exists()), run)


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--lacuna", type=pathlib.Path, required=True)
    flags.add_argument("--python", required=True, help="one that has the peers' packages")
    flags.add_argument("--data", type=pathlib.Path, required=True, help="folder of Multi30k")
    flags.add_argument("--folder", type=pathlib.Path, required=True, help="where vocabulary and token cache are kept")
    flags.add_argument("--model", type=pathlib.Path, help="trained run or checkpoint to translate with")
    flags.add_argument("--shape", choices=["small", "base"], default="small")
    flags.add_argument("--precision", default="fp32,bf16", help="of training; none leaves training out")
    flags.add_argument("--device", default="cpu", help="that training is measured on; translating is measured on the CPU")
    flags.add_argument("--one-by-one", action="store_true", help="of translating, only one sentence after the other")
    flags.add_argument("--length", type=int, default=0, help="steps of each translation, for a model that was hardly trained; 0 = as the model ends it")
    flags.add_argument("--threads", type=int, default=2)
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--steps", type=int, default=30)
    flags = flags.parse_args()
    if flags.precision == "none" and flags.model is None:
        say("scripts/bench_peers.sh: --precision none leaves training out, and without --model translating is left out too: give one of them")
        sys.exit(2)
    preload = tcmalloc()
    if preload is None:
        say("libtcmalloc_minimal.so.4 is not installed: the peers are measured without it")
    precisions = flags.precision.split(",") if flags.precision != "none" else []
    if precisions and result_of([*lacuna_train(flags, "fp32", 1), "--warmup", "0"]) is None:  # makes vocabulary and cache
        sys.exit(1)
    for precision in precisions:
        compare_training(flags, precision, preload)
    if flags.model is None:
        return say("translating is left out: no --model")
    flags.checkpoint = checkpoint_of(flags.model)
    if not has(flags.python, "ctranslate2"):
        return say(f"translating is left out: {flags.python} lacks the package ctranslate2")
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "ct2"
        if subprocess.run([flags.lacuna, "export", "-m", flags.checkpoint, "--to", "ctranslate2", "-o", model, "--quiet"], check=False).returncode != 0:
            sys.exit(1)  # it has said why
        if not flags.one_by_one:
            compare_translating(flags, model, preload)
        for beam in (5, 1):
            compare_latency(flags, model, preload, beam)


if __name__ == "__main__":
    main()

"""What the long proofs of runs that several ranks serve have in common: small runs, and whether their results are the same bytes."""
import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import ranks  # noqa: E402
import small_run  # noqa: E402


class Trials:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.draw = os.path.abspath(program), folder, random.Random(seed)
        small_run.write_digits(os.path.join(folder, "train.txt"), 900, 1)
        small_run.write_digits(os.path.join(folder, "valid.txt"), 60, 2)
        self.failures, self.slowest = 0, 0.0

    def configure(self, run, model, **more):
        train = {"batch_tokens": 96, "lr": 0.004, "warmup_steps": 10, "clip_norm": 0.5, "ema_decay": 0.9, "label_smoothing": 0.1,
                 "max_steps": 50, "log_every": 2, "valid_every": 25, "save_every": 10, **more}
        keys = ", ".join(f"{key}: {value}" for key, value in train.items())
        path = os.path.join(self.folder, f"{run}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""run: {self.folder}/{run}
threads: 1
data:
  train: [{{src: {self.folder}/train.txt, tgt: {self.folder}/train.txt}}]
  valid: [{{src: {self.folder}/valid.txt, tgt: {self.folder}/valid.txt}}]
  vocab_size: 24
  spm_alpha: 0.3
model: {{preset: tiny, d_model: 32, d_ff: 64, num_heads: 2, encoder_layers: 1, decoder_layers: 2, dropout: 0.1}}
translate: {{beam_size: 2, max_length: 12}}
train: {{{keys}}}
""")
        overlay = os.path.join(self.folder, f"{run}.model.yaml")
        with open(overlay, "w", encoding="utf-8") as file:
            file.write(f"model: {model}\n")
        return ["train", "-c", path, "-c", overlay]

    def start(self, run, model, size, places=None, **more):
        """Starts ranks; `places` are further arguments of ranks.Ranks."""
        return ranks.Ranks(self.program, self.configure(run, model, **more), size, **(places or {}))

    def serve(self, run, model, size, **more):
        with self.start(run, model, size, **more) as together:
            codes = together.wait(600)
            if codes != [0] * size:
                raise AssertionError(f"{run}: {codes}\n{together.texts()}")
            return together.text(0)

    def results(self, run):
        return ranks.results(os.path.join(self.folder, run))

    def note(self, what, wrong):
        """Prints what was tried, and what is wrong with it."""
        self.failures += bool(wrong)
        print(f"{what}{': WRONG: ' + ', '.join(wrong) if wrong else ''}", flush=True)

    def report(self, what, differences):
        self.failures += bool(differences)
        print(f"{what}: {'differs in ' + ', '.join(differences) if differences else 'the same bytes'}", flush=True)


def parser(description):
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("program")
    result.add_argument("--seed", type=int, default=1)
    return result


def carry_out(trials_class, arguments, wanted):
    """Calls the wanted functions of new trials, in a temporary folder; exit code 1 if one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        trials = trials_class(arguments.program, folder, arguments.seed)
        for name in wanted:
            getattr(trials, name)()
    sys.exit(1 if trials.failures else 0)

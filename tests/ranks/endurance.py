#!/usr/bin/env python3
"""Long proof that the number of ranks changes nothing: endurance.py PROGRAM [--kills N] [--seed N]

Trains models of several kinds on 2, 3 and 4 ranks, each twice, and compares every byte with one process; kills ranks at random moments and
starts the same command again; lets 4, 2, 3 and 1 ranks serve one run in turn. Takes some minutes.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import ranks  # noqa: E402
import small_run  # noqa: E402

KINDS = {
    "softmax": "{}",
    "learned alpha": "{attention: {default: {type: entmax, alpha: learned}}}",
    "calibrated": "{attention: {cross: {type: calibrated}}}",
}


class Trials:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.draw = os.path.abspath(program), folder, random.Random(seed)
        small_run.write_digits(os.path.join(folder, "train.txt"), 900, 1)
        small_run.write_digits(os.path.join(folder, "valid.txt"), 60, 2)
        self.failures = 0

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

    def start(self, run, model, size, **more):
        return ranks.Ranks(self.program, self.configure(run, model, **more), size)

    def serve(self, run, model, size, **more):
        with self.start(run, model, size, **more) as together:
            codes = together.wait(600)
            if codes != [0] * size:
                raise AssertionError(f"{run}: {codes}\n{together.texts()}")
            return together.text(0)

    def results(self, run):
        return ranks.results(os.path.join(self.folder, run))

    def report(self, what, differences):
        self.failures += bool(differences)
        print(f"{what}: {'differs in ' + ', '.join(differences) if differences else 'the same bytes'}", flush=True)

    def equality(self):
        for kind, model in KINDS.items():
            name = kind.replace(" ", "_")
            for size in (2, 3, 4):
                alone = f"{name}_1_{size}"
                self.serve(alone, model, 1, update_freq=size)
                for again in ("", " again"):
                    run = f"{name}_{size}{again.strip()}"
                    self.serve(run, model, size)
                    self.report(f"{kind}, {size} ranks{again}", ranks.different(self.results(run), self.results(alone)))

    def kills(self, count):
        """Kills a random rank at a random moment, again and again, on 2 and 4 ranks in turn."""
        more = {"max_steps": 400, "valid_every": 100, "save_every": 20}
        model = KINDS["softmax"]
        done, slowest = 0, 0.0
        for size in (2, 4):
            run, left = f"killed_{size}", count // 2
            self.serve(f"whole_{size}", model, 1, update_freq=size, **more)
            while True:
                with self.start(run, model, size, **more) as together:
                    if left == 0:
                        assert together.wait(600) == [0] * size, together.texts()
                        break
                    victim = self.draw.randrange(size)
                    ranks.wait_for(lambda one=together: one.text(0) or one.processes[0].poll() is not None)  # until then, others wait for it
                    time.sleep(self.draw.uniform(0, 4))
                    if together.processes[victim].poll() is not None:
                        codes = together.wait(60)
                        assert codes == [0] * size, f"{codes}\n{together.texts()}"
                        shutil.rmtree(os.path.join(self.folder, run))  # it had finished: begin anew
                        continue
                    together.send(signal.SIGKILL, [victim])
                    killed = time.monotonic()
                    codes = together.wait(15)
                    slowest = max(slowest, time.monotonic() - killed)
                    left, done = left - 1, done + 1
                    expected = [-9 if rank == victim else 75 for rank in range(size)]
                    if codes != expected:
                        self.failures += 1
                        print(f"{run}: rank {victim} killed: exit codes {codes}\n{together.texts()}", flush=True)
            self.report(f"{size} ranks, {count // 2} kills", ranks.different(self.results(run), self.results(f"whole_{size}")))
        print(f"{done} ranks killed; the others had ended after {slowest:.1f} s at most", flush=True)

    def in_turn(self):
        """Lets 4, 2, 3 and 1 ranks go on with one run."""
        model = KINDS["softmax"]
        for again in ("a", "b"):
            for size, steps in ((4, 50), (2, 100), (3, 150), (1, 200)):
                said = self.serve(f"turns_{again}", model, size, max_steps=steps, schedule="constant", valid_every=50)
                if size > 1:
                    print("  " + next(line for line in said.splitlines() if "serve the run" in line), flush=True)
        self.serve("four", model, 4, max_steps=200, schedule="constant", valid_every=50)
        self.report("4, 2, 3 and 1 ranks in turn, twice", ranks.different(self.results("turns_a"), self.results("turns_b")))
        losses = [[one["loss"] for one in self.results(run)["metrics"] if one["kind"] == "valid"][-1] for run in ("turns_a", "four")]
        states = [self.results(run)["trainer.json"] for run in ("turns_a", "four")]
        same = all(states[0][key] == states[1][key] for key in ("step", "epoch", "batch", "tgt_tokens"))
        print(f"loss {losses[0]:.6f} with 4, 2, 3 and 1 ranks, {losses[1]:.6f} with 4; position and tokens {'are equal' if same else 'differ'}")
        self.failures += not same or abs(losses[0] - losses[1]) > 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["equality", "kills", "turns"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(arguments.program, folder, arguments.seed)
        if arguments.only in (None, "equality"):
            trials.equality()
        if arguments.only in (None, "turns"):
            trials.in_turn()
        if arguments.only in (None, "kills"):
            trials.kills(arguments.kills)
    sys.exit(1 if trials.failures else 0)


if __name__ == "__main__":
    main()

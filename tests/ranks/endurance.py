#!/usr/bin/env python3
"""Long proof that the number of ranks changes nothing: endurance.py PROGRAM [--kills N] [--seed N]

Trains models of several kinds on 2, 3 and 4 ranks, each twice, and compares every byte with one process; kills ranks at random moments and
starts the same command again; lets 4, 2, 3 and 1 ranks serve one run in turn. Takes some minutes.
"""
import os
import shutil
import signal
import time

import ranks
from trials import Trials, carry_out, parser

KINDS = {
    "softmax": "{}",
    "learned alpha": "{attention: {default: {type: entmax, alpha: learned}}}",
    "calibrated": "{attention: {cross: {type: calibrated}}}",
}


class Endurance(Trials):
    COUNT = 20  # of kills

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

    def kills(self):
        """Kills a random rank at a random moment, again and again, on 2 and 4 ranks in turn."""
        more = {"max_steps": 400, "valid_every": 100, "save_every": 20}
        model, count = KINDS["softmax"], self.COUNT
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
    parsed = parser(__doc__)
    parsed.add_argument("--kills", type=int, default=20)
    parsed.add_argument("--only", choices=["equality", "in_turn", "kills"])
    arguments = parsed.parse_args()
    Endurance.COUNT = arguments.kills
    carry_out(Endurance, arguments, [arguments.only] if arguments.only else ["equality", "in_turn", "kills"])


if __name__ == "__main__":
    main()

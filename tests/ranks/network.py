#!/usr/bin/env python3
"""Runs of several ranks on bad networks, each rank as if on a machine of its own: network.py PROGRAM

Delay, jitter and loss, and a network that is cut for five seconds, must not change a byte; one that is cut for good must end all ranks. Needs
root, for namespaces and tun devices, and a compiler. Takes some minutes.
"""
import os
import subprocess
import sys
import time

import namespaces
import ranks
from trials import Trials, carry_out, parser

TIMEOUT = 6  # train.rank_timeout, seconds
LOST = 75


def processes_in(space):
    return subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=True).stdout.split()


class Networks(Trials):
    MORE = {"max_steps": 100, "rank_timeout": TIMEOUT}

    def expected(self, size, **more):
        """The results of one process that computes what `size` ranks do."""
        run = f"alone_{size}"
        if not os.path.exists(os.path.join(self.folder, run)):
            self.serve(run, "{}", 1, update_freq=size, **{**self.MORE, **more})
        return self.results(run)

    def is_training(self, run, step=1):
        return any(record.get("step", 0) >= step for record in ranks.records(os.path.join(self.folder, run)))

    def late_and_lossy(self):
        for size in (2, 3):
            with namespaces.Relay(size, delay=25, jitter=5, loss=0.01) as network:
                began = time.monotonic()
                self.serve(f"lossy_{size}", "{}", size, places=network.places(), **{**self.MORE, "rank_timeout": 60})
            took = time.monotonic() - began
            self.report(f"{size} ranks, 25 ms delay, 5 ms jitter, 1 % of packets lost, 100 updates in {took:.0f} s",
                        ranks.different(self.results(f"lossy_{size}"), self.expected(size)))

    def cut_for_a_while(self):
        for victim in (0, 1):
            run = f"cut_{victim}"
            with namespaces.Relay(2) as network:
                with self.start(run, "{}", 2, places=network.places(), **{**self.MORE, "rank_timeout": 60}) as together:
                    ranks.wait_for(lambda name=run: self.is_training(name, 10))
                    network.cut(victim)
                    time.sleep(5)
                    running = [process.poll() is None for process in together.processes]
                    network.cut()
                    codes = together.wait(60)
                    differs = ranks.different(self.results(run), self.expected(2)) if codes == [0, 0] else [f"exit codes {codes}", together.texts()]
            self.report(f"rank {victim} cut off for 5 s at an early step{'' if all(running) else ' (ended too early)'}", differs)

    def cut_for_good(self):
        for size, victim in ((2, 0), (2, 1), (4, 0), (4, 2)):
            run = f"gone_{size}_{victim}"
            with namespaces.Relay(size) as network:
                with self.start(run, "{}", size, places=network.places(), **{**self.MORE, "max_steps": 100000}) as together:
                    ranks.wait_for(lambda name=run: self.is_training(name))
                    network.cut(victim)
                    began = time.monotonic()
                    codes = together.wait(TIMEOUT + 20)
                    took = time.monotonic() - began
                    told = all(f"rank {victim} (node{victim}" in together.text(rank) for rank in range(size) if rank != victim)
                    wrong = [] if codes == [LOST] * size else [f"exit codes {codes}"]
                    wrong += [] if took < TIMEOUT + 5 else [f"after {took:.1f} s"]
                    wrong += [] if told else ["what they say: " + together.texts()]
                left = [pid for i in range(size) for pid in processes_in(network.space(i))]
                wrong += [f"processes left: {left}"] if left else []
            self.note(f"{size} ranks, rank {victim} cut off for good: all ended after {took:.1f} s (rank_timeout {TIMEOUT} s)", wrong)


def main():
    parsed = parser(__doc__)
    trials = ["late_and_lossy", "cut_for_a_while", "cut_for_good"]
    parsed.add_argument("--only", choices=trials)
    arguments = parsed.parse_args()
    if problem := namespaces.why_not():
        print(f"skipped: {problem}")
        sys.exit(0)
    carry_out(Networks, arguments, [arguments.only] if arguments.only else trials)


if __name__ == "__main__":
    main()

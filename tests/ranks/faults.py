#!/usr/bin/env python3
"""What happens to a run when one of its ranks fails, on one machine: faults.py PROGRAM

Kills ranks in every phase and stops them; lets a stopped rank 0 wake up after its run went on without it; fills the disk; takes memory from one
rank. Parts need root, and a compiler. Takes some minutes.
"""
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time

import ranks
from trials import Trials, carry_out, parser

TIMEOUT = 6  # train.rank_timeout, seconds
SOON = 5     # seconds in which all others end
LOST, MACHINE = 75, 1


class Faults(Trials):
    MORE = {"max_steps": 400, "valid_every": 20, "save_every": 10, "log_every": 1}

    def folder_of(self, run):
        return os.path.join(self.folder, run)

    def step_of(self, run, kind="train"):
        return max((record["step"] for record in ranks.records(self.folder_of(run)) if record.get("kind") == kind), default=0)

    def ending(self, together, size, victim, seconds, code=LOST):
        """What is wrong with how the others end."""
        began = time.monotonic()
        codes = together.wait(seconds + 20)
        took = time.monotonic() - began
        self.slowest = max(self.slowest, took)
        others = [end for rank, end in enumerate(codes) if rank != victim]
        wrong = [] if others == [code] * len(others) else [f"exit codes {codes}: {together.texts()}"]
        return wrong + ([] if took < seconds else [f"after {took:.1f} s"])

    # ---- phases

    def reach(self, phase, run, together):
        """Waits until a run is in a phase; a rank may then be anywhere in it."""
        first = self.step_of(run)
        if phase == "start":
            ranks.wait_for(lambda: all(self.sockets_of(process.pid) > 1 for process in together.processes))  # of a store, and of rank 0
            time.sleep(self.draw.uniform(0, 0.5))  # the last rank is missing, and the others wait for it
        elif phase == "joined":
            ranks.wait_for(lambda: self.has_joined(together))
        elif phase == "update":
            ranks.wait_for(lambda: self.step_of(run) > first)
            time.sleep(self.draw.uniform(0, 0.05))
        elif phase == "exchange":
            ranks.wait_for(lambda: self.step_of(run) > first)
            ranks.wait_for(lambda: self.is_waiting(together.processes[0].pid))
        elif phase == "validation":
            due = (first // self.MORE["valid_every"] + 1) * self.MORE["valid_every"]
            ranks.wait_for(lambda: self.step_of(run) >= due)
            time.sleep(self.draw.uniform(0, 0.02))
        elif phase == "saving":
            ranks.wait_for(lambda: self.step_of(run) > first and glob.glob(glob.escape(self.folder_of(run)) + "/.step_*.tmp.*"))

    @staticmethod
    def sockets_of(pid):
        folder = f"/proc/{pid}/fd"
        return sum(os.readlink(os.path.join(folder, name)).startswith("socket:") for name in os.listdir(folder))

    @staticmethod
    def has_joined(together):
        """True once rank 0 has connections with all others: more threads, of Gloo, than before."""
        return together.processes[0].poll() is not None or len(os.listdir(f"/proc/{together.processes[0].pid}/task")) > 4

    @staticmethod
    def is_waiting(pid):
        """True if the process's first thread sleeps, as it does for messages alone."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rsplit(") ", 1)[1].startswith("S")
        except FileNotFoundError:
            return True

    def phases(self):
        """Kills rank 1 and rank 0 in each phase; at last the run must have the bytes of an undisturbed one."""
        self.slowest = 0
        for size in (2, 4):
            self.serve(f"whole_{size}", "{}", 1, update_freq=size, **self.MORE)
            run = f"phases_{size}"
            for phase in ("start", "joined", "update", "exchange", "validation", "saving"):
                if phase == "start" and size == 2:
                    continue  # where one of two is missing, nobody is left to wait
                for victim in (1, 0):
                    absent = {size - 1} if phase == "start" else set()
                    with self.start(run, "{}", size, places={"absent": absent}, **self.MORE) as together:
                        self.reach(phase, run, together)
                        together.send(signal.SIGKILL, [victim])
                        self.note(f"{size} ranks, rank {victim} killed, {phase}", self.ending(together, size, victim, SOON))
            self.serve(run, "{}", size, **self.MORE)
            self.report(f"{size} ranks, after all of these", ranks.different(self.results(run), self.results(f"whole_{size}")))
        print(f"the others had ended after {self.slowest:.1f} s at most", flush=True)

    def starts(self):
        """Kills ranks at random moments of the first second, under lacuna launch."""
        self.slowest = 0
        for victim in [0, 1, 2] * 4:
            words = self.configure("starts", "{}", **self.MORE)
            with subprocess.Popen([self.program, "launch", "-n", "3", "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=ranks.environment()) as launcher:
                ranks.wait_for(lambda one=launcher: len(self.children_of(one.pid)) == 3)
                children = self.children_of(launcher.pid)
                time.sleep(self.draw.uniform(0, 0.8))
                os.kill(children[victim], signal.SIGKILL)
                began = time.monotonic()
                said = launcher.communicate(timeout=60)[0].decode()
                took = time.monotonic() - began
            self.slowest = max(self.slowest, took)
            wrong = [] if launcher.returncode == 128 + signal.SIGKILL else [f"exit code {launcher.returncode}: {said}"]
            if took > SOON:
                wrong.append(f"after {took:.1f} s: {said}")
            if wrong:
                self.note(f"rank {victim} killed as it starts", wrong)
        self.note(f"12 ranks killed in the first 0.8 s under lacuna launch: all had ended after {self.slowest:.1f} s at most", [])

    @staticmethod
    def children_of(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]

    # ---- stopped processes

    def stops(self):
        self.slowest = 0
        more = {**self.MORE, "rank_timeout": TIMEOUT, "max_steps": 100000}
        for size, victim in ((2, 0), (2, 1), (4, 0), (4, 3)):
            run = f"stopped_{size}_{victim}"
            with self.start(run, "{}", size, **more) as together:
                ranks.wait_for(lambda name=run: self.step_of(name) > 3)
                together.send(signal.SIGSTOP, [victim])
                began = time.monotonic()
                others = [process for rank, process in enumerate(together.processes) if rank != victim]
                ranks.wait_for(lambda some=others: all(process.poll() is not None for process in some), TIMEOUT + 30)
                took = time.monotonic() - began
                wrong = [] if took < TIMEOUT + SOON else [f"after {took:.1f} s"]
                wrong += [] if all(process.returncode == LOST for process in others) else ["exit codes", together.texts()]
                together.send(signal.SIGCONT, [victim])
                woken = time.monotonic()
                codes = together.wait(30)
                wrong += [] if codes == [LOST] * size and time.monotonic() - woken < SOON else [f"the stopped one: {codes} {together.texts()}"]
            self.note(f"{size} ranks, rank {victim} stopped: the others had ended after {took:.1f} s (rank_timeout {TIMEOUT} s), and it soon "
                      "after it went on", wrong)

    def pauses(self):
        """Stops a rank for half of rank_timeout."""
        self.serve("unpaused", "{}", 1, update_freq=2, **self.MORE)
        for victim in (0, 1):
            run = f"paused_{victim}"
            with self.start(run, "{}", 2, **{**self.MORE, "rank_timeout": TIMEOUT}) as together:
                ranks.wait_for(lambda name=run: self.step_of(name) > 3)
                together.send(signal.SIGSTOP, [victim])
                time.sleep(TIMEOUT / 2)
                together.send(signal.SIGCONT, [victim])
                codes = together.wait(120)
                differs = ranks.different(self.results(run), self.results("unpaused")) if codes == [0, 0] else [f"exit codes {codes}", together.texts()]
            self.report(f"rank {victim} stopped for {TIMEOUT / 2:g} s, half of rank_timeout", differs)

    # ---- a rank 0 that wakes up

    def contents(self, run):
        """Names and bytes of all files of a run, but for checkpoints that are being written."""
        found = {}
        for folder, _, names in os.walk(self.folder_of(run)):
            for name in names if ".tmp." not in folder else []:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[path] = (hashlib.sha256(file.read()).hexdigest(), os.stat(path).st_mtime_ns)
        return found

    def fence(self):
        """Rank 0 stops, its run goes on without it, and it wakes up: it must write nothing. On one machine its lock would keep the others out;
        as on a file server that takes the machine of the lock for dead, there is none."""
        library = os.path.join(self.folder, "no_locks.so")
        source = "#include <errno.h>\nint flock(int file, int how) { (void)file; (void)how; errno = ENOLCK; return -1; }\n"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
        self.serve("unfenced", "{}", 1, update_freq=2, **self.MORE)
        for moment in ("training", "saving", "saving"):
            run = f"fenced_{moment}"
            shutil.rmtree(self.folder_of(run), ignore_errors=True)
            places = {"variables": {"LD_PRELOAD": library}}
            with self.start(run, "{}", 2, places=places, **self.MORE) as former:
                ranks.wait_for(lambda name=run: self.step_of(name) > 12)
                if moment == "saving":
                    ranks.wait_for(lambda name=run: glob.glob(glob.escape(self.folder_of(name)) + "/.step_*.tmp.*"))
                former.send(signal.SIGSTOP, [0])
                former.send(signal.SIGKILL, [1])
                self.serve(run, "{}", 2, places=places, **self.MORE)
                before = self.contents(run)
                former.send(signal.SIGCONT, [0])
                codes = former.wait(30)
                changed = ranks.different(before, self.contents(run))
                wrong = [f"it has changed {changed}"] if changed else []
                wrong += [] if codes[0] in (LOST, MACHINE) else [f"exit code {codes[0]}"]
                wrong += ranks.different(self.results(run), self.results("unfenced"))
            self.note(f"rank 0 stopped while {moment}, and woken after its run went on to the end elsewhere: exit code {codes[0]}, no file changed",
                      wrong)

    # ---- the machine

    def disk(self):
        """The disk of rank 0 is full, and later has room again."""
        if os.geteuid() != 0:
            print("disk full: skipped: a loop device needs root")
            return
        image, mount = os.path.join(self.folder, "disk.img"), os.path.join(self.folder, "disk")
        os.mkdir(mount)
        with open(image, "wb") as file:
            file.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        run, more = "disk/run", {**self.MORE, "valid_every": 1000}
        try:
            self.serve("roomy", "{}", 1, update_freq=2, **more)
            words = self.configure("full", "{}", **more)
            words += ["--run", os.path.join(self.folder, run)]
            with ranks.Ranks(self.program, words, 2) as together:
                ranks.wait_for(lambda: os.path.exists(os.path.join(self.folder, run, "last")))
                subprocess.run(["dd", "if=/dev/zero", f"of={mount}/filler", "bs=4k"], check=False, capture_output=True)
                codes = together.wait(60)
                wrong = [] if codes == [MACHINE, MACHINE] else [f"exit codes {codes}"]
                wrong += [] if "No space left" in together.text(0) else [together.texts()]
                told = next((line for line in together.text(0).splitlines() if "error: " in line), "")
            step = json.load(open(os.path.join(self.folder, run, "last", "trainer.json"), encoding="utf-8"))["step"]  # pylint: disable=consider-using-with
            os.remove(f"{mount}/filler")
            with ranks.Ranks(self.program, words, 2) as together:
                codes = together.wait(120)
                wrong += [] if codes == [0, 0] else [f"afterwards {codes}: {together.texts()}"]
                wrong += ranks.different(ranks.results(os.path.join(self.folder, run)), self.results("roomy"))
            self.note(f"disk of rank 0 full: both ended with 1; gone on from step {step} to the bytes of an undisturbed run: {told}", wrong)
        finally:
            subprocess.run(["umount", mount], check=True)

    def memory(self):
        """Rank 1 has less memory than a batch needs: it splits it, and the others wait."""
        more = {"batch_tokens": 6000, "clip_norm": 0, "max_steps": 6, "log_every": 1, "valid_every": 1000, "save_every": 1000}
        model = "{d_model: 256, d_ff: 1024, dropout: 0}"
        self.serve("rich", model, 1, update_freq=2, **more)
        norms = [record["gradient_norm"] for record in ranks.records(self.folder_of("rich")) if record["kind"] == "train"]
        with self.start("measured", model, 2, **more) as together:
            peak = 0
            while together.processes[1].poll() is None:
                peak = max(peak, self.status(together.processes[1].pid, "VmPeak"))
                time.sleep(0.01)
            together.wait(60)
        for megabytes in range(16, 400, 16):
            run = f"poor_{megabytes}"
            limit = peak - (megabytes << 20)
            with self.start(run, model, 2, places={"before": {1: ["prlimit", f"--as={limit}"]}}, **more) as together:
                codes, said = together.wait(120), together.text(1)
            if codes == [0, 0] and "is split in two" not in said:
                continue
            line = next((line for line in said.splitlines() if "is split in two" in line), said)
            got = [record["gradient_norm"] for record in ranks.records(self.folder_of(run)) if record["kind"] == "train"]
            far = [abs(a - b) / b for a, b in zip(got, norms)]
            wrong = [] if codes == [0, 0] and len(got) == len(norms) and far[0] < 1e-6 else [f"exit codes {codes}: {said}"]
            self.note(f"rank 1 with {megabytes} MiB less address space than it takes: gradient norm within {far[0]:.1e} in the first update, and "
                      f"{max(far):.1e} in {len(far)}: {line}", wrong)
            return
        self.note("no limit made rank 1 split a batch", ["not shown"])

    @staticmethod
    def status(pid, key):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                return next((int(line.split()[1]) << 10 for line in file if line.startswith(key)), 0)
        except (FileNotFoundError, ProcessLookupError):
            return 0


def main():
    parsed = parser(__doc__)
    trials = ["phases", "starts", "stops", "pauses", "fence", "disk", "memory"]
    parsed.add_argument("--only", choices=trials)
    arguments = parsed.parse_args()
    carry_out(Faults, arguments, [arguments.only] if arguments.only else trials)


if __name__ == "__main__":
    main()

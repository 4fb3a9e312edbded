"""A run that is killed, stopped or interrupted at random moments, and has to come to the end of an undisturbed one."""
import dataclasses
import os
import random
import re
import signal
import subprocess
import time

from runs import differences, snapshot
from scenarios import CONFIGURATION, TEST, TRAIN, VALID

# All that has a state: moving average, several batches an update, subword sampling, two corpora, an attention for each site.
COMMAND = f"""{TRAIN} {VALID} {TEST} --data.spm_type unigram --data.spm_alpha 0.3 --data.spm_nbest 4 --data.vocab_size 36
    --model.attention '{{encoder_self: {{type: topk, k: 3}}, decoder_self: rela, cross: entmax15}}' --train.update_freq 2
    --train.ema_decay 0.9 --train.max_steps 40 --train.save_every 3 --train.valid_every 4 --train.keep_last 2 --train.average_last 2"""
# What a run is at, by the last of these that it has said.
PHASES = (("start", r"^"), ("vocabulary", r"SentencePiece"), ("token cache", r"tokeniz"), ("updates", r"step \d+, epoch"),
          ("validation", r"validation after"), ("end", r"averaged the last|test set|training finished"))


@dataclasses.dataclass
class Interruption:
    """One run with its interruptions."""
    seed: int
    action: str
    phases: list
    problems: list
    operation: str = ""
    missed: bool = False

    def name(self):
        return f"{self.action} {self.seed}"

    def words(self):
        return self.operation


def phase_of(said):
    return max((match.start(), number, name) for number, (name, pattern) in enumerate(PHASES) for match in re.finditer(pattern, said))[2]


def wait(process, seconds):
    """True if the process still runs after so many seconds."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def said_so_far(folder):
    with open(folder + ".said", encoding="utf-8", errors="replace") as said:
        return said.read()


class Interrupter:
    """Interrupts runs in copies of a folder, in the course of so many seconds, and compares their end."""

    def __init__(self, workshop, template):
        self.workshop, self.template = workshop, template
        folder = workshop.copy(template, "undisturbed")
        start = time.monotonic()
        ended = workshop.finish(workshop.start(COMMAND, folder, counts=False, forks=False), folder)
        self.seconds = time.monotonic() - start
        if ended.code != 0:
            raise SystemExit(f"torture.py: an undisturbed run ended with {ended.code}:\n{ended.said}")
        self.wanted = snapshot(folder)
        workshop.remove("undisturbed")

    def judge(self, action, seed):
        draw = random.Random(seed)
        name = f"{action}.{seed}"
        one = Interruption(seed, action, [], [])
        folder = self.workshop.copy(self.template, name)
        while not one.phases:  # a run that ended before its moment came begins anew
            self.workshop.remove(name)
            self.workshop.copy(self.template, name)
            self.interrupt(one, folder, draw)
        while not one.problems and draw.random() < 0.3:  # what goes on is interrupted, too
            self.interrupt(one, folder, draw)
        self.compare(one, folder)
        self.workshop.remove(name)
        return one

    def interrupt(self, one, folder, draw):
        process = self.workshop.start(COMMAND, folder, counts=False, forks=False)
        if not wait(process, draw.uniform(0, 1.2 * self.seconds)):
            if process.returncode != 0:
                one.problems.append(f"exit code {process.returncode}: {said_so_far(folder)[-300:]}")
            return
        one.phases.append(phase_of(said_so_far(folder)))
        getattr(self, one.action)(one, process, folder)

    def kill(self, _one, process, _folder):
        process.kill()
        process.wait()

    def stop_and_continue(self, one, process, folder):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        process.send_signal(signal.SIGCONT)
        if (code := process.wait()) != 0:
            one.problems.append(f"exit code {code} after SIGSTOP and SIGCONT: {said_so_far(folder)[-300:]}")

    def terminate(self, one, process, folder):
        process.terminate()
        code, said = process.wait(), said_so_far(folder)
        if code not in (0, 143, -signal.SIGTERM):
            one.problems.append(f"exit code {code} after SIGTERM: {said[-300:]}")
        if code == -signal.SIGTERM and "step 1, epoch" in said:
            one.problems.append("ended by SIGTERM without saving")
        steps = [int(step) for step in re.findall(r" step (\d+), epoch", said)]
        if code == 143 and steps and not os.path.isdir(os.path.join(folder, "run", f"step_{max(steps)}")):
            one.problems.append(f"step {max(steps)} was reached and is not saved")

    def compare(self, one, folder):
        ended = self.workshop.run(COMMAND, folder)
        if ended.code != 0:
            one.problems.append(f"the same command again: exit code {ended.code}: {ended.message() or ended.said[-300:]}")
            return
        one.problems += [f"the same command again: {words}" for words in differences(snapshot(folder), self.wanted)[:4]]


def interrupt(workshop, template, number, seed, pool, record):
    """Yields for each action what was done, 0, the cases and the seconds: kills of `number` runs, and other signals to a fifth as many."""
    one, stamp = Interrupter(workshop, template), record.stamp(CONFIGURATION, COMMAND)

    def judged(action, case):
        found = record.find(stamp, f"{action} {case}")
        if found is None:
            ended = one.judge(action, case)
            found = {"phases": ended.phases, "problems": ended.problems}
            record.add(stamp, f"{action} {case}", found)
        return Interruption(case, action, found["phases"], found["problems"], ", ".join(found["phases"]))

    for action, count in (("kill", number), ("terminate", -(-number // 5)), ("stop_and_continue", -(-number // 5))):
        start = time.monotonic()
        cases = list(pool.map(lambda case, action=action: judged(action, case), range(seed, seed + count)))
        phases = [phase for case in cases for phase in case.phases]
        spread = ", ".join(f"{phase} {phases.count(phase)}" for phase, _ in PHASES if phase in phases)
        yield f"{action}: {len(phases)} ({spread})", 0, cases, time.monotonic() - start

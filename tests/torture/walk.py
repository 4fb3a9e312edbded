"""Walks one scenario: a case for each operation and each way in which it may fail, and what is wrong with how it ended."""
import dataclasses
import glob
import hashlib
import os
import re
import shutil
import signal

from runs import LONGEST_SECONDS, TEMPORARY, differences, lasting, snapshot, temporaries
from scenarios import TEMPLATES, write_texts

# How an operation may fail.
KINDS = {
    "open": ("enospc", "eio", "emfile", "kill", "readonly"),
    "write": ("short", "enospc", "eio", "eintr", "kill", "torn", "full", "power"),
    "write line": ("enospc", "kill"),
    "fsync": ("eio", "eintr", "kill", "power"),
    "rename": ("eio", "enospc", "kill", "power"),
    "exchange": ("eio", "einval", "kill", "power"),
    "unlink": ("eio", "kill", "power"),
    "rmdir": ("eio", "kill"),
    "mkdir": ("enospc", "eio", "kill"),
    "symlink": ("enospc", "eio", "kill"),
    "link": ("enospc", "eio", "kill"),
    "truncate": ("eio", "kill"),
    "look": ("emfile", "eio"),
    "read": ("eio", "eintr", "short"),
}
HARMLESS = ("short", "eintr")  # the system may do so at any time: nothing is to be seen of it
KILLS = ("kill", "torn", "power")
MOST_SHOWN = 4  # differences of a case
MOST_TRIES = 5  # starts of a case until its operation is met


@dataclasses.dataclass
class Case:
    number: int  # of the operation
    kind: str
    operation: str = ""  # its place
    problems: tuple = ()
    missed: bool = False  # the operation did not come again

    def name(self):
        return f"{self.number}:{self.kind}"

    def words(self):
        return f"{' '.join(self.operation.split())}: {self.kind}"


def must_end_well(workshop, command, folder, **settings):
    ended = workshop.run(command, folder, **settings)
    if ended.code != 0:
        raise SystemExit(f"torture.py: lacuna {command} ended with {ended.code} without any fault:\n{ended.said}")
    return ended


def template(workshop, name):
    """The folder of a template, made when it is first asked for."""
    place = workshop.place(f"{name}.begin")
    if os.path.exists(place):
        return place
    begin, commands = TEMPLATES[name]
    if begin is None:
        os.mkdir(place)
        write_texts(place)
    else:
        shutil.copytree(template(workshop, begin), place, symlinks=True)
    for command in commands:
        must_end_well(workshop, command, place)
    return place


def step_of(path):
    found = re.fullmatch(r"run/step_(\d+)", path)
    return int(found.group(1)) if found else 0


def whole_checkpoints(folder):
    """The steps of the checkpoints of a run that have all their files."""
    manifests = glob.glob("run/step_*/manifest.json", root_dir=folder)
    return [step_of(os.path.dirname(manifest)) for manifest in manifests]


def contents(folder, patterns):
    """The bytes of files, by path without links."""
    found = {}
    for pattern in patterns:
        for path in glob.glob(os.path.join(folder, pattern)):
            with open(path, "rb") as file:
                found[os.path.realpath(path)] = file.read()
    return found


def put_back(files):
    for path, data in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def last_words(ended):
    """The error, or the last line."""
    return ended.message() or ended.said.strip().rpartition("\n")[2]


class Walk:
    """One scenario: its folder before the command, and what an undisturbed run leaves."""

    def __init__(self, workshop, scenario):
        self.workshop, self.scenario = workshop, scenario
        self.template = self.make_template()
        self.old = snapshot(self.template)
        self.wanted, self.operations = self.undisturbed()
        self.others = self.read_changed() if scenario.change and scenario.change.may_be_read else []  # other ends that are right
        self.reruns = {}  # what is wrong after the same command was started again, by what the folder held

    def make_template(self):
        place = self.workshop.place(f"{self.scenario.name}.template")
        shutil.copytree(template(self.workshop, self.scenario.template), place, symlinks=True)
        if self.scenario.before:
            must_end_well(self.workshop, self.scenario.before, place)
        return place

    def undisturbed(self):
        """What the folder holds in the end, and the operations on the way. Both of two runs must come to the same."""
        ends = []
        for name in ("first", "second"):
            folder = self.workshop.copy(self.template, f"{self.scenario.name}.{name}")
            ended = must_end_well(self.workshop, self.scenario.command, folder, counts=True)
            ends.append(snapshot(folder))
            self.workshop.remove(os.path.basename(folder))
        if different := differences(ends[1], ends[0]):
            raise SystemExit(f"torture.py: {self.scenario.name}: two undisturbed runs differ: {'; '.join(different[:MOST_SHOWN])}")
        return ends[0], ended.operations

    def read_changed(self):
        """What the command leaves if the change came before it: one end, or none where it refuses."""
        folder = self.workshop.copy(self.template, f"{self.scenario.name}.changed")
        self.scenario.change.act(self.workshop, folder, self.scenario.command)
        ended = self.workshop.run(self.scenario.command, folder)
        found = snapshot(folder)
        self.workshop.remove(os.path.basename(folder))
        return [found] if ended.code == 0 else []

    def all_cases(self, wanted):
        """One for each operation and each way in which it may fail, of those wanted or, without a choice, of all."""
        cases = []
        for operation in self.operations:
            for kind in ("pause",) if self.scenario.change else KINDS[operation.name]:
                if kind in (self.scenario.kinds or (kind,)) and kind in (wanted or (kind,)):
                    cases.append(Case(operation.number, kind, operation.place()))
        return cases

    def some_cases(self, wanted, most):
        """A stride over the cases, with one for each kind and place."""
        by_site = {}
        for case in self.all_cases(wanted):
            by_site.setdefault((re.sub(r"[0-9a-f]{8,}|\d+", "N", case.operation), case.kind), case)
        cases = list(by_site.values())
        number = min(len(cases), most)
        return [cases[int((i + 0.5) * len(cases) / number)] for i in range(number)]

    def judge(self, case, keeps=False):
        """The case with its problems, in words."""
        folder = self.workshop.copy(self.template, f"{self.scenario.name}.{case.number}.{case.kind}")
        try:
            problems = self.change(folder, case) if self.scenario.change else self.fail(folder, case)
        except (OSError, ValueError) as error:  # a case that cannot be judged does not end the walk
            problems = [f"{type(error).__name__}: {error}"]
        if keeps:
            print(f"the folder of the case: {folder}")
        else:
            self.workshop.remove(os.path.basename(folder))
        return dataclasses.replace(case, problems=tuple(problems or ()), missed=problems is None)

    def together(self, kind, cases):
        """What is wrong after each operation of a harmless kind has failed once, all in one run."""
        names = [name for name, kinds in KINDS.items() if kind in kinds]
        folder = self.workshop.copy(self.template, f"{self.scenario.name}.{kind}")
        ended = self.workshop.run(self.scenario.command, folder, kind=kind, each=names)
        failed = sum(operation.fails for operation in ended.operations)
        problems = self.problems_of_end(ended, Case(0, kind)) + differences(snapshot(folder), self.wanted)
        self.workshop.remove(os.path.basename(folder))
        return problems + ([f"{failed} operations failed, of {len(cases)}"] if failed < len(cases) else [])

    def run_with_fault(self, folder, case):
        """How the command ended with the fault of the case; None if its operation did not come. Threads take turns in another order each time,
        so the command is then started anew in the folder as it was."""
        for _ in range(MOST_TRIES):
            ended = self.workshop.run(self.scenario.command, folder, case.operation, case.kind)
            if any(operation.fails for operation in ended.operations):
                return ended
            name = os.path.basename(folder)
            self.workshop.remove(name)
            self.workshop.copy(self.template, name)
        return None

    def fail(self, folder, case):
        """What is wrong after the operation of the case has failed; None if it was not met."""
        ended = self.run_with_fault(folder, case)
        if ended is None:
            return None
        problems = self.problems_of_end(ended, case)
        if self.scenario.save_every > 0:
            problems += self.problems_of_loss(folder, ended)
        found = snapshot(folder)
        if self.scenario.output:
            problems += self.problems_of_output(found)
        if ended.code == 0:
            left = temporaries(found)
            problems += [f"exit code 0, but {words}" for words in differences(found, self.wanted, left)[:MOST_SHOWN]]
            if not left:
                return problems
        return problems + self.problems_of_rerun(folder)

    @staticmethod
    def problems_of_end(ended, case):
        if ended.code == -signal.SIGALRM:
            return [f"not ended after {LONGEST_SECONDS} seconds"]
        if ended.code < 0 and not (ended.code == -signal.SIGKILL and case.kind in KILLS):
            return [f"ended by signal {-ended.code}: {last_words(ended)}"]
        if ended.code != 0 and case.kind in HARMLESS:
            return [f"exit code {ended.code} for what the system may do at any time: {last_words(ended)}"]
        if ended.code > 0 and not ended.message() and "the same command" not in ended.said:
            return [f"exit code {ended.code} without a message: {last_words(ended)}"]
        if ended.code > 1:
            return [f"exit code {ended.code}, where a fault of the system is 1: {last_words(ended)}"]
        return []

    def problems_of_loss(self, folder, ended):
        """Checkpoints that were there and are not, and updates that were lost beyond those of two intervals: that of the checkpoint that
        was being written, and the one since."""
        newest = max(whole_checkpoints(folder), default=0)
        made = max((step_of(path) for path in ended.renamed), default=0)
        reached = max((int(step) for step in re.findall(r" step (\d+), epoch", ended.said)), default=0)
        problems = []
        if made > newest:
            problems.append(f"the checkpoint after step {made} is lost; the newest is of step {newest}")
        if reached - newest > 2 * self.scenario.save_every:
            problems.append(f"step {reached} was reached, and the newest checkpoint is of step {newest}")
        return problems

    def problems_of_output(self, found):
        """The output has to be that of before or that of an undisturbed run."""
        name = self.scenario.output

        def output(whole):
            return {path: value for path, value in whole.items() if (path + "/").startswith(name + "/") and not TEMPORARY.search(path)}

        ends = (output(self.old), output(self.wanted))
        if output(found) in ends or (self.scenario.may_lack and any(output(found).items() <= end.items() for end in ends)):
            return []
        different = differences(output(found), output(self.wanted))
        return [f"{name} is neither the old nor the new: {words}" for words in different[:MOST_SHOWN]]

    def problems_of_rerun(self, folder):
        """What is wrong after the same command was started again. In folders that hold the same, it is started once."""
        held = hashlib.sha256(repr(sorted((lasting(path), value) for path, value in snapshot(folder).items())).encode()).digest()
        if held not in self.reruns:
            self.reruns[held] = self.rerun(folder)
        return self.reruns[held]

    def rerun(self, folder):
        ended = self.workshop.run(self.scenario.command, folder)
        if ended.code == 2 and ended.message() and self.scenario.change and self.scenario.change.may_refuse:
            return []
        if ended.code != 0:
            return [f"the same command again: exit code {ended.code}: {last_words(ended)}"]
        found = snapshot(folder)
        different = min((differences(found, wanted) for wanted in (self.wanted, *self.others)), key=len)
        return [f"the same command again: {words}" for words in different[:MOST_SHOWN]]

    def change(self, folder, case):
        """What is wrong after others have changed something while the program was stopped before the operation of the case."""
        change, command = self.scenario.change, self.scenario.command
        process = self.workshop.start(command, folder, case.operation, "pause")
        files, other = {}, None
        if self.workshop.stopped(process):
            files = contents(folder, change.touches)
            other = change.act(self.workshop, folder, command)
            os.killpg(process.pid, signal.SIGCONT)
        ended = self.workshop.finish(process, folder)
        if other is not None:
            other.wait(timeout=LONGEST_SECONDS)
        problems = self.problems_of_change(folder, ended, [os.path.relpath(path, folder) for path in files])
        put_back(files)
        if os.path.exists(os.path.join(folder, "moved")):
            shutil.rmtree(os.path.join(folder, "run"), ignore_errors=True)
            os.rename(os.path.join(folder, "moved"), os.path.join(folder, "run"))
        return problems + self.problems_of_rerun(folder)

    def problems_of_change(self, folder, ended, touched):
        change = self.scenario.change
        if ended.code < 0:
            return [f"ended by signal {-ended.code}: {last_words(ended)}"]
        problems = []
        if ended.code > 0 and not (ended.message() and change.names in ended.message()):
            problems.append(f"exit code {ended.code}, and no message names {change.names}: {last_words(ended)}")
        if change.may_go and os.path.exists(os.path.join(folder, change.may_go)) and ended.code > 0:
            problems.append(f"{change.may_go} came again, with {', '.join(sorted(os.listdir(os.path.join(folder, change.may_go))))}")
        if ended.code > 0 or (change.may_go and not os.path.exists(os.path.join(folder, change.may_go))):
            return problems

        def without_touched(found):
            return {path: value for path, value in found.items() if path not in touched}

        found = without_touched(snapshot(folder))
        ends = [differences(found, without_touched(wanted)) for wanted in (self.wanted, *self.others)]
        return [f"exit code 0, but {words}" for words in min(ends, key=len)[:MOST_SHOWN]]
